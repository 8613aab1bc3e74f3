// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * files - files into the session, by dropping them into the page or choosing them, and from there.
 *
 * In the session they are in one directory.  Nothing is kept here of a connection that has ended.
 * The names that the server tells may be anybody's: they are shown as text and nothing else.
 */
import { TYPE, message, protoDecode, protoEncode, text } from "./wire.js";

const OFFER = 0, ACCEPT = 1, DATA = 2, END = 3, CANCEL = 4, LIST = 5;
const SERVERS = 0x80000000; // its ids have that
const PIECE = 32 << 10, AHEAD = 8 * PIECE; // what is sent before it is acknowledged
const MOST = 1 << 30; // bytes that are kept in memory
const MOST_LISTED = 256, AT_A_TIME = 4;

export class Files {
	/* `parts`: drop, where files may be dropped; choose, an input; list; told, where it is said what happens. */
	constructor(send, parts) {
		this.send = (fields) => send(message(TYPE.TO_FILE, [], protoEncode(fields)));
		this.parts = parts;
		this.restart(false);
		parts.drop.addEventListener("dragover", (e) => this.allowed && e.preventDefault());
		parts.drop.addEventListener("drop", (e) => {
			if (!this.allowed)
				return;
			e.preventDefault();
			this.put(e.dataTransfer.files);
		});
		parts.choose.addEventListener("change", () => {
			this.put(parts.choose.files);
			parts.choose.value = "";
		});
	}

	restart(allowed) {
		this.allowed = allowed;
		this.out = new Map(); // id -> a file that is sent
		this.in = new Map(); // id -> one that comes
		this.waiting = [];
		this.listed = 0;
		this.last = 0;
		this.parts.list.replaceChildren();
		this.parts.told.textContent = "";
	}

	tell(what) {
		this.parts.told.textContent = what;
	}

	/* ---- into the session */

	put(files) {
		this.waiting.push(...files);
		this.next();
	}

	next() {
		while (this.waiting.length && this.out.size < AT_A_TIME) {
			const file = this.waiting.shift(), id = ++this.last;

			this.out.set(id, { id, file, sent: 0, taken: 0, busy: false });
			this.send({ 1: OFFER, 2: id, 3: file.name, 4: file.size });
		}
	}

	async pump(f) {
		if (f.busy)
			return;
		f.busy = true;
		try {
			while (f.sent < f.file.size && f.sent - f.taken < AHEAD) {
				const data = new Uint8Array(await f.file.slice(f.sent, f.sent + PIECE).arrayBuffer());

				if (this.out.get(f.id) !== f)
					return;
				this.send({ 1: DATA, 2: f.id, 5: f.sent, 6: data });
				f.sent += data.length;
			}
			if (f.sent === f.file.size && !f.ended) {
				f.ended = true;
				this.send({ 1: END, 2: f.id });
			}
		} catch (e) {
			this.out.delete(f.id);
			this.send({ 1: CANCEL, 2: f.id });
			this.tell(f.file.name + ": " + e.message);
			this.next();
		} finally {
			f.busy = false;
		}
	}

	/* ---- from the session */

	ask() {
		this.parts.list.replaceChildren();
		this.listed = 0;
		this.send({ 1: LIST });
	}

	offered(id, name, size) {
		const item = document.createElement("li"), button = document.createElement("button");

		if (this.listed++ >= MOST_LISTED)
			return;
		button.textContent = name + " (" + size + " bytes)";
		button.addEventListener("click", () => this.get(id, name, size));
		item.append(button);
		this.parts.list.append(item);
	}

	get(id, name, size) {
		if (this.in.has(id))
			return;
		if (size > MOST) {
			this.tell(name + " is too large for a browser");
			return;
		}
		this.in.set(id, { name, size, pieces: [], have: 0 });
		this.send({ 1: ACCEPT, 2: id });
	}

	came(id, offset, data) {
		const f = this.in.get(id);

		if (!f || offset !== f.have || f.have + data.length > f.size) {
			this.in.delete(id);
			this.send({ 1: CANCEL, 2: id });
			return;
		}
		f.pieces.push(data.slice());
		f.have += data.length;
	}

	save(id) {
		const f = this.in.get(id), link = document.createElement("a");

		this.in.delete(id);
		if (!f || f.have !== f.size)
			return;
		link.href = URL.createObjectURL(new Blob(f.pieces, { type: "application/octet-stream" }));
		link.download = f.name;
		link.click();
		setTimeout(() => URL.revokeObjectURL(link.href), 60000);
		this.tell(f.name + " is here");
	}

	/* The body of a FILE. */
	take(body) {
		const m = protoDecode(body);
		const kind = m[1] || 0, id = m[2] || 0, offset = m[5] || 0, f = this.out.get(id);

		if (kind === OFFER && id >= SERVERS) {
			this.offered(id, text(m[3]), m[4] || 0);
		} else if (kind === ACCEPT && f) {
			f.taken = Math.min(offset, f.sent);
			this.tell(f.file.name + ": " + Math.floor(100 * f.taken / Math.max(f.file.size, 1)) + " %");
			this.pump(f);
		} else if (kind === DATA && m[6]) {
			this.came(id, offset, m[6]);
		} else if (kind === END && f) {
			this.out.delete(id);
			this.tell("it is in the session: " + text(m[3]));
			this.next();
			if (!this.out.size)
				this.ask();
		} else if (kind === END && this.in.has(id)) {
			this.save(id);
		} else if (kind === CANCEL) {
			const name = f ? f.file.name : this.in.get(id)?.name;

			this.out.delete(id);
			this.in.delete(id);
			this.next();
			this.tell((name ? name + ": " : "") + text(m[7]));
		}
	}
}
