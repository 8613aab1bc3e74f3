// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * clipboard - text that was copied in the session is put onto the clipboard of this machine.
 *
 * Browsers allow it while the page has the focus, and in answer to a key or a click.  Without one
 * Chromium asks people whether the page may read the clipboard, which they never wanted; so it waits
 * for that, unless they have allowed it before.  What is refused is tried again with the next one.
 * The other direction needs no permission where the user pastes (keyboard.js); where reading is
 * allowed, it is also read when the page gets the focus.
 */
export const MAX_BYTES = 1 << 20;

async function mayRead() {
	try {
		return (await navigator.permissions.query({ name: "clipboard-read" })).state === "granted";
	} catch {
		return false; // this browser does not let pages read it
	}
}

/* Without people being asked. */
async function mayWrite() {
	return (navigator.userActivation?.isActive ?? true) || mayRead();
}

export class Clipboard {
	/* send(text): what is on this machine's clipboard; true if it has been sent. */
	constructor(send) {
		this.send = send;
		this.waiting = null;
		this.last = null; // what both sides have
		for (const name of ["keydown", "pointerdown", "pointerup"]) // a touch counts when it ends
			window.addEventListener(name, () => this.write(), true);
		window.addEventListener("focus", () => this.read());
	}

	/* A connection begins, and nothing is known of what the session has. */
	restart() {
		this.last = null;
	}

	/* From the session. */
	take(text) {
		this.waiting = text;
		this.last = text;
		this.write();
	}

	async write() {
		const text = this.waiting;

		if (text === null || !navigator.clipboard)
			return;
		try {
			if (!await mayWrite())
				return;
			await navigator.clipboard.writeText(text);
			if (this.waiting === text)
				this.waiting = null;
		} catch {
			/* with the next key or click */
		}
	}

	/* As much as the session can be given. */
	fits(text) {
		return text.length <= MAX_BYTES && new TextEncoder().encode(text).length <= MAX_BYTES;
	}

	give(text) {
		if (text && text !== this.last && this.fits(text) && this.send(text))
			this.last = text;
	}

	async read() {
		try {
			if (await mayRead() && this.waiting === null)
				this.give(await navigator.clipboard.readText());
		} catch {
			/* pasting works */
		}
	}
}
