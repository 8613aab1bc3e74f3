// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * keyboard - keys pressed in the page are pressed in the session.
 *
 * A hidden text field has the focus, for only there input methods, touch keyboards and pasting work.
 * A key goes by keydown and keyup, with the keysym it had when it went down; what an input method
 * or a touch keyboard has written comes as text, and is typed character by character.
 *
 * A key that is held repeats in the session, so repeats of the page's are dropped.  Everything that
 * is down is released when the page loses the keyboard: its keyup goes to somebody else.
 *
 * Pasting: the browser gives the clipboard to whoever lets it have the key.  Then the text goes
 * first and the key after it, so that the session pastes what was meant.
 *
 * On Linux some browsers paste what is selected on this machine into the field when the middle
 * button comes up, wherever it was pressed.  That button is for the session, which has a selection
 * of its own, and what was copied there is not to be lost by it.
 */
import { keysymOf, keysymOfCharacter, scancodeOf } from "./keymap.js";

const IS_MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const PROCESSED = 229; // an input method has it
const MIDDLE = 4; // of PointerEvent.buttons

export class Keyboard {
	/* send(keysym, scancode, down); paste(text) comes before the key that pasted, if it is true. */
	constructor(field, send, paste) {
		this.field = field;
		this.send = send;
		this.paste = paste;
		this.down = new Map(); // by KeyboardEvent.code (or key): [keysym, scancode]
		this.held = null; // the event of a key that pastes, until the clipboard has come
		this.middle = false; // that button was pressed, and no key after it
		field.addEventListener("keydown", (e) => this.keydown(e));
		field.addEventListener("keyup", (e) => this.keyup(e));
		field.addEventListener("input", (e) => this.typed(e));
		field.addEventListener("compositionend", (e) => this.composed(e));
		field.addEventListener("paste", (e) => this.pasted(e));
		field.addEventListener("blur", () => this.releaseAll());
		window.addEventListener("blur", () => this.releaseAll());
		window.addEventListener("pointerdown", (e) => this.pointed(e, false), true);
		window.addEventListener("pointermove", (e) => this.pointed(e, this.middle), true);
		document.addEventListener("visibilitychange", () => document.hidden && this.releaseAll());
	}

	focus() {
		this.field.focus({ preventScroll: true });
	}

	id(e) {
		return e.code || "key " + e.key;
	}

	press(e) {
		const pair = [keysymOf(e), scancodeOf(e)];

		if (!pair[0] && !pair[1])
			return;
		this.altGraph(e);
		this.down.set(this.id(e), pair);
		this.send(...pair, 1);
		/* While Command is down, other keys' keyup never comes on a Mac. */
		if (IS_MAC && e.metaKey && e.key !== "Meta")
			this.release(this.id(e));
	}

	release(id) {
		const pair = this.down.get(id);

		if (pair) {
			this.down.delete(id);
			this.send(...pair, 0);
		}
	}

	releaseAll() {
		this.held = null;
		for (const id of [...this.down.keys()])
			this.release(id);
	}

	/* Windows has AltGr as Ctrl and Alt: the Ctrl which came before it was never pressed. */
	altGraph(e) {
		if (e.key === "AltGraph" && this.lastControl === e.timeStamp)
			this.release("ControlLeft");
		this.lastControl = e.code === "ControlLeft" ? e.timeStamp : -1;
	}

	pastes(e) {
		return ((e.ctrlKey || e.metaKey) && !e.altKey && e.code === "KeyV") ||
			(e.shiftKey && e.key === "Insert");
	}

	pointed(e, before) {
		this.middle = before || Boolean(e.buttons & MIDDLE);
	}

	keydown(e) {
		this.middle = false;
		this.flush();
		if (e.isComposing || e.keyCode === PROCESSED || e.key === "Unidentified")
			return;
		if (e.repeat || this.down.has(this.id(e))) {
			e.preventDefault();
			return;
		}
		if (this.pastes(e)) {
			this.held = e; // not prevented: it is what makes the browser paste
			setTimeout(() => this.flush(e), 50);
			return;
		}
		e.preventDefault();
		this.press(e);
	}

	keyup(e) {
		this.flush();
		e.preventDefault();
		this.release(this.id(e));
		/* Of both Shift keys held, browsers tell one end only. */
		if (e.key === "Shift" && !e.shiftKey) {
			this.release("ShiftLeft");
			this.release("ShiftRight");
		}
	}

	/* The key that pastes, if its clipboard has not come. */
	flush(only) {
		const e = this.held;

		if (e && (!only || only === e)) {
			this.held = null;
			this.press(e);
		}
	}

	pasted(e) {
		const text = e.clipboardData.getData("text/plain");

		e.preventDefault();
		if (text && !this.middle && !this.paste(text))
			this.held = null; // or the session would paste something else
		this.flush();
	}

	type(text) {
		for (const c of text) {
			const keysym = keysymOfCharacter(c);
			if (keysym) {
				this.send(keysym, 0, 1);
				this.send(keysym, 0, 0);
			}
		}
	}

	typed(e) {
		if (e.isComposing)
			return;
		if (e.inputType === "insertText" || e.inputType === "insertReplacementText")
			this.type(e.data || "");
		else if (e.inputType === "insertLineBreak" || e.inputType === "insertParagraph")
			this.type("\n");
		else if (e.inputType === "deleteContentBackward")
			this.tap(0xff08);
		else if (e.inputType === "deleteContentForward")
			this.tap(0xffff);
		/* A touch keyboard has something to delete only where something is. */
		this.field.value = "  ";
		this.field.setSelectionRange(1, 1);
	}

	tap(keysym) {
		this.send(keysym, 0, 1);
		this.send(keysym, 0, 0);
	}

	composed(e) {
		this.type(e.data || "");
		this.field.value = "";
	}
}
