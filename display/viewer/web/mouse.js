// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mouse - mouse, pen and fingers on the canvas are the session's pointer.
 *
 * A finger: a tap clicks, moving it drags, holding it still is the right button; two fingers turn
 * the wheel.  What a finger means is known a little later, so its button goes down late.
 */
const LEFT = 1, RIGHT = 4;
const STILL = 8; // CSS pixels
const HOLD_MS = 600;
const NOTCH = 100; // of WheelEvent.deltaY in pixels
const LINES = 3; // a notch

/* MouseEvent.buttons has the right one second, the protocol the middle one. */
const buttonsOf = (b) => (b & 1) | (b & 2 ? RIGHT : 0) | (b & 4 ? 2 : 0) | (b & 24);

const clamp = (v, low, high) => Math.max(low, Math.min(high, v));

export class Mouse {
	/* send(x, y, buttons, wheelX, wheelY), in pixels of the session's screen. */
	constructor(canvas, send, pressed) {
		this.canvas = canvas;
		this.send = send;
		this.pressed = pressed;
		this.at = [0, 0];
		this.buttons = 0;
		this.wheel = [0, 0];
		this.fingers = new Map(); // pointerId: [x, y] in the window
		this.gesture = null; // "?" until it is known, "drag", "wheel", "done"
		for (const [name, take] of [["pointerdown", this.downs], ["pointermove", this.moves],
			["pointerup", this.ups], ["pointercancel", this.cancels]])
			canvas.addEventListener(name, (e) => take.call(this, e));
		canvas.addEventListener("wheel", (e) => this.turns(e), { passive: false });
		for (const name of ["contextmenu", "auxclick", "dragstart"])
			canvas.addEventListener(name, (e) => e.preventDefault());
		window.addEventListener("blur", () => this.releaseAll());
	}

	/* Where in the session's screen; the picture may be scaled, and is centred where it has room. */
	locate(e) {
		const box = this.canvas.getBoundingClientRect();
		const { width, height } = this.canvas;
		const scale = Math.min(box.width / width, box.height / height);
		const left = box.left + (box.width - width * scale) / 2;
		const top = box.top + (box.height - height * scale) / 2;

		this.at = [clamp(Math.floor((e.clientX - left) / scale), 0, width - 1),
			clamp(Math.floor((e.clientY - top) / scale), 0, height - 1)];
	}

	tell(buttons, wheelX = 0, wheelY = 0) {
		this.buttons = buttons;
		this.send(...this.at, buttons, wheelX, wheelY);
	}

	releaseAll() {
		clearTimeout(this.timer);
		this.fingers.clear();
		this.gesture = null;
		if (this.buttons)
			this.tell(0);
	}

	downs(e) {
		e.preventDefault();
		this.pressed(e);
		this.canvas.setPointerCapture(e.pointerId);
		if (e.pointerType === "touch")
			return this.fingerDown(e);
		this.locate(e);
		this.tell(buttonsOf(e.buttons));
	}

	moves(e) {
		/* A button that goes down beside another one would take the focus. */
		if (e.button >= 0)
			e.preventDefault();
		if (e.pointerType === "touch")
			return this.fingerMove(e);
		this.locate(e);
		this.tell(buttonsOf(e.buttons));
	}

	ups(e) {
		if (e.pointerType === "touch")
			return this.fingerUp(e);
		this.locate(e);
		this.tell(buttonsOf(e.buttons));
	}

	cancels(e) {
		this.releaseAll();
	}

	/* Whole notches; what is left is kept for the next turn. */
	roll(dx, dy) {
		this.wheel[0] += dx;
		this.wheel[1] += dy;
		const notches = this.wheel.map((v) => clamp(Math.trunc(v), -127, 127));
		this.wheel = this.wheel.map((v) => v % 1);
		if (notches[0] || notches[1])
			this.tell(this.buttons, ...notches);
	}

	turns(e) {
		const unit = e.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? NOTCH
			: e.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINES : 1;

		e.preventDefault();
		this.locate(e);
		this.roll(e.deltaX / unit, e.deltaY / unit);
	}

	fingerDown(e) {
		this.fingers.set(e.pointerId, [e.clientX, e.clientY]);
		clearTimeout(this.timer);
		if (this.fingers.size === 1) {
			this.gesture = "?";
			this.locate(e);
			this.timer = setTimeout(() => {
				this.gesture = "done";
				this.tell(RIGHT);
				this.tell(0);
			}, HOLD_MS);
		} else if (this.gesture === "?") {
			this.gesture = "wheel";
		}
	}

	fingerMove(e) {
		const from = this.fingers.get(e.pointerId);
		if (!from)
			return;
		const dx = e.clientX - from[0], dy = e.clientY - from[1];

		if (this.gesture === "?" && Math.hypot(dx, dy) > STILL) {
			clearTimeout(this.timer);
			this.gesture = "drag";
			this.tell(LEFT); // where it began
		}
		if (this.gesture === "drag") {
			this.locate(e);
			this.tell(LEFT);
		} else if (this.gesture === "wheel") {
			this.fingers.set(e.pointerId, [e.clientX, e.clientY]);
			this.roll(-dx / 40, -dy / 40);
		}
	}

	fingerUp(e) {
		clearTimeout(this.timer);
		if (this.gesture === "?") {
			this.tell(LEFT);
			this.tell(0);
		} else if (this.gesture === "drag") {
			this.locate(e);
			this.tell(0);
		}
		this.fingers.delete(e.pointerId);
		this.gesture = this.fingers.size ? "done" : null;
	}
}
