// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * screen - plays the server's messages on a canvas, in their order.
 *
 * Everything is drawn at once but JPEG and VP8, which browsers decode beside the page: decoding begins
 * when the message arrives, and what came behind waits until it has been drawn.  So messages go
 * through a queue whose head may be waited for.  UPDATED comes out of the same queue: when the
 * server hears of it, all before it can be seen.
 *
 * A server waits for that, so there is never much in the queue.  One that does not would fill the
 * page's memory: of what waits only so many are being decoded, and there is an end to what may wait.
 * Files, which come as fast as they can, have nothing to do with the picture, and wait for nothing.
 *
 * The canvas is the only copy of the picture; COPY reads from it.  KEEP copies to a second canvas, made
 * when it is needed, and UNCOVER from there.
 */
import { Reader, TYPE } from "./wire.js";
import * as pixels from "./pixels.js";
import { supported, Vp8 } from "./vp8.js";

const MAX_SIDE = 8192;
const MAX_FRAME = 4194304; // pixels
const MAX_AHEAD = 16; // messages whose pictures are being decoded
const MAX_WAITING = 64 << 20; // bytes, four times what a server sends without being answered
const VIDEO = { I420: 0, MJPEG: 1, VP8: 2 };

/* The promise of what is said in HELLO: a bit for each format of VIDEO. */
export async function videoFormats() {
	return 1 << VIDEO.I420 | 1 << VIDEO.MJPEG | (await supported() ? 1 << VIDEO.VP8 : 0);
}

export class Screen {
	/*
	 * `events`: updated(serial), marked(serial), resized(), blank() when what was drawn is lost, failed(error),
	 * and other(type, body) for what is no drawing.
	 */
	constructor(canvas, events) {
		this.canvas = canvas;
		this.events = events;
		this.pen = canvas.getContext("2d", { alpha: false });
		/* A graphics driver that begins anew leaves a canvas black, and what was set of it as at first. */
		canvas.addEventListener("contextrestored", () => {
			this.pen.imageSmoothingEnabled = false;
			events.blank();
		});
		this.vp8 = new Vp8();
		this.restart();
	}

	/* What is still queued belongs to a connection that has ended. */
	restart() {
		this.queue = [];
		this.begun = 0; // of the queue, those whose decoding has begun, where it needs any
		this.bytes = 0; // in the queue
		this.waiting = false;
		this.run = {}; // of this connection
		this.vp8.forget();
		this.kept = null;
	}

	resize(w, h) {
		if (w < 1 || h < 1 || w > MAX_SIDE || h > MAX_SIDE)
			throw new Error("a screen of " + w + "x" + h);
		this.kept = null;
		this.canvas.width = w; // black from here on, whatever it was
		this.canvas.height = h;
		this.pen.imageSmoothingEnabled = false;
		this.pen.fillStyle = "#000";
		this.pen.fillRect(0, 0, w, h);
		this.events.resized();
	}

	take(type, body) {
		if (type === TYPE.FILE)
			return this.events.other(type, body);
		this.bytes += body.length;
		if (this.bytes > MAX_WAITING)
			throw new Error("more is sent than can be shown");
		this.queue.push({ type, body, bitmap: null });
		this.begin();
		if (!this.waiting)
			this.play();
	}

	begin() {
		for (; this.begun < Math.min(this.queue.length, MAX_AHEAD); this.begun++) {
			const entry = this.queue[this.begun];

			if (entry.type === TYPE.RAW || entry.type === TYPE.VIDEO)
				entry.bitmap = this.decode(entry.type, entry.body);
			else if (entry.type === TYPE.RESIZE)
				this.vp8.forget();
		}
	}

	/* The promise of a bitmap or ImageData, where a browser's decoder is needed. */
	decode(type, body) {
		const r = new Reader(body);
		let jpeg;

		if (type === TYPE.RAW) {
			r.bytes(8);
			if (r.u8() !== pixels.CODEC.JPEG)
				return null;
			r.u8();
			jpeg = r.rest();
		} else {
			const stream = r.u16();
			r.bytes(6);
			const w = r.u16(), h = r.u16(), format = r.u8();
			r.u8();
			const fw = r.u16(), fh = r.u16();
			r.u64();
			if (format === VIDEO.VP8)
				return this.vp8Frame(stream, w, h, fw, fh, r.rest());
			if (format !== VIDEO.MJPEG)
				return null;
			jpeg = r.rest();
		}
		const bitmap = createImageBitmap(new Blob([jpeg], { type: "image/jpeg" }),
			{ colorSpaceConversion: "none", premultiplyAlpha: "none" });
		bitmap.catch(() => {}); // it is looked at when its turn has come
		return bitmap;
	}

	vp8Frame(stream, w, h, fw, fh, data) {
		if (!fw || !fh || fw > w || fh > h || fw * fh > MAX_FRAME)
			throw new Error("video that was not agreed on");
		const frame = this.vp8.decode(stream, fw, fh, data);
		frame.catch(() => {}); // likewise
		return frame;
	}

	async play() {
		const run = this.run;

		this.waiting = true;
		try {
			while (run === this.run && this.queue.length) {
				const entry = this.queue[0];
				const bitmap = entry.bitmap ? await entry.bitmap : null;
				if (run !== this.run)
					return;
				this.queue.shift();
				this.begun--;
				this.bytes -= entry.body.length;
				this.begin();
				this.draw(entry.type, entry.body, bitmap);
			}
		} catch (e) {
			if (run === this.run)
				this.events.failed(e);
		}
		if (run === this.run)
			this.waiting = false;
	}

	rect(r) {
		const [x, y, w, h] = [r.u16(), r.u16(), r.u16(), r.u16()];

		if (!w || !h || x + w > this.canvas.width || y + h > this.canvas.height)
			throw new Error("a rectangle is not within the screen");
		return [x, y, w, h];
	}

	draw(type, body, bitmap) {
		const r = new Reader(body);

		switch (type) {
		case TYPE.RAW:
			return this.raw(r, bitmap);
		case TYPE.COPY:
			return this.copy(r);
		case TYPE.KEEP:
			return this.keep(r, true);
		case TYPE.UNCOVER:
			return this.keep(r, false);
		case TYPE.SFILL: {
			const rect = this.rect(r);
			this.pen.fillStyle = pixels.cssColour(r.u32());
			return this.pen.fillRect(...rect);
		}
		case TYPE.BITMAP: {
			const [x, y, w, h] = this.rect(r);
			return this.pen.putImageData(pixels.bitmapImage(r, w, h), x, y);
		}
		case TYPE.PFILL: {
			const [x, y, w, h] = this.rect(r);
			return this.pen.putImageData(pixels.tiledImage(r, w, h), x, y);
		}
		case TYPE.VIDEO:
			return this.video(r, bitmap);
		case TYPE.RESIZE:
			return this.resize(r.u16(), r.u16());
		case TYPE.UPDATED:
			return this.events.updated(r.u32());
		case TYPE.MARK:
			return this.events.marked(r.u32());
		default:
			return this.events.other(type, body);
		}
	}

	raw(r, bitmap) {
		const [x, y, w, h] = this.rect(r);
		const codec = r.u8();

		r.u8();
		if (!bitmap)
			return this.pen.putImageData(pixels.rawImage(codec, r, w, h), x, y);
		if (bitmap.width !== w || bitmap.height !== h)
			throw new Error("a picture has another size than its rectangle");
		this.pen.drawImage(bitmap, x, y);
		bitmap.close();
	}

	copy(r) {
		const sx = r.u16(), sy = r.u16();
		const [x, y, w, h] = this.rect(r);

		if (sx + w > this.canvas.width || sy + h > this.canvas.height)
			throw new Error("a rectangle is not within the screen");
		this.pen.drawImage(this.canvas, sx, sy, w, h, x, y, w, h);
	}

	/* To the second canvas, or from there. */
	keep(r, there) {
		const [x, y, w, h] = this.rect(r);

		if (!this.kept) {
			const canvas = document.createElement("canvas");

			canvas.width = this.canvas.width;
			canvas.height = this.canvas.height;
			this.kept = canvas.getContext("2d", { alpha: false });
			this.kept.imageSmoothingEnabled = false;
			canvas.addEventListener("contextrestored", () => this.events.blank());
		}
		const [from, to] = there ? [this.canvas, this.kept] : [this.kept.canvas, this.pen];
		to.drawImage(from, x, y, w, h, x, y, w, h);
	}

	video(r, bitmap) {
		r.bytes(4);
		const [x, y, w, h] = this.rect(r);
		const format = r.u8();
		r.u8();
		const fw = r.u16(), fh = r.u16();
		r.u64();
		if (!fw || !fh || fw * fh > MAX_FRAME || (!bitmap && format !== VIDEO.I420))
			throw new Error("video that was not agreed on");
		if (!bitmap)
			return this.pen.putImageData(
				pixels.stretchedImage(pixels.i420Image(r.rest(), fw, fh), w, h), x, y);
		if (bitmap.width !== fw || bitmap.height !== fh)
			throw new Error("a picture has another size than is said");
		if (format === VIDEO.VP8 && fw === w && fh === h)
			return this.pen.putImageData(bitmap, x, y);
		this.pen.imageSmoothingEnabled = true;
		this.pen.drawImage(format === VIDEO.VP8 ? this.asCanvas(bitmap) : bitmap, x, y, w, h);
		this.pen.imageSmoothingEnabled = false;
		if (format === VIDEO.MJPEG)
			bitmap.close();
	}

	/* ImageData, to be scaled. */
	asCanvas(data) {
		if (!this.scratch)
			this.scratch = document.createElement("canvas");
		this.scratch.width = data.width;
		this.scratch.height = data.height;
		this.scratch.getContext("2d", { alpha: false }).putImageData(data, 0, 0);
		return this.scratch;
	}
}
