// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vp8 - frames of a film that need those before them, by the browser's decoder (WebCodecs).
 *
 * What VP8 decodes to is the same everywhere: it is taken as brightness and colour, and made pixels
 * by the numbers of proto/SPEC.md, not by the browser's, which are another television's.  A frame's
 * head is looked at first, as in display/codec/vp8.c.
 *
 * So what a browser's decoder gives must be that: it is tried with a frame of 16x16 first.  (Firefox 153
 * gives colours.)  One that later gives anything else, nothing, or an error isn't sent VP8 again.
 */
import * as pixels from "./pixels.js";

const CONFIG = { codec: "vp8", hardwareAcceleration: "prefer-software", optimizeForLatency: true };
const FRAME_US = 40000; // Firefox wants a duration
const PATIENCE_MS = 10000;
const HEAD = 3, HEAD_KEY = 10;

const PROBE = "EAIAnQEqEAAQAABHCIWFiIWEiAICAAwOYAD+aAA=", PROBE_SIDE = 16;

let broken = false, works = null;

/* The promise of whether frames can be decoded here: only in a secure context. */
export async function supported() {
	works = works || probe().catch(() => false);
	return await works && !broken;
}

async function probe() {
	if (typeof VideoDecoder !== "function" || !(await VideoDecoder.isConfigSupported(CONFIG)).supported)
		return false;
	const decoder = new Decoder(PROBE_SIDE, PROBE_SIDE);
	const frame = decoder.ask(true, Uint8Array.from(atob(PROBE), (c) => c.charCodeAt(0)));
	decoder.end();
	await frame;
	return true;
}

/* Is it a frame that may be drawn, and does it stand alone? */
function isKey(data, w, h) {
	const key = data.length >= HEAD && !(data[0] & 1);

	if (data.length < (key ? HEAD_KEY : HEAD) || data[0] & 0x0e || !(data[0] & 0x10))
		throw new Error("a frame is none of VP8's");
	if (key && (data[3] !== 0x9d || data[4] !== 1 || data[5] !== 0x2a ||
		(data[6] | data[7] << 8) !== w || (data[8] | data[9] << 8) !== h))
		throw new Error("a frame has another size than is said");
	return key;
}

/* The planes of a frame one behind the other, as I420; the frame is closed. */
async function planes(frame, w, h) {
	const cw = w + 1 >> 1, ch = h + 1 >> 1, size = w * h;
	const out = new Uint8Array(size + 2 * cw * ch);

	try {
		const { width, height } = frame.visibleRect;
		if (width !== w || height !== h)
			throw new Error("a frame has another size than is said");
		if (frame.format === "I420") {
			await frame.copyTo(out, { layout: [{ offset: 0, stride: w },
				{ offset: size, stride: cw }, { offset: size + cw * ch, stride: cw }] });
		} else if (frame.format === "NV12") {
			const both = new Uint8Array(size + 2 * cw * ch);
			await frame.copyTo(both, { layout: [{ offset: 0, stride: w }, { offset: size, stride: 2 * cw }] });
			out.set(both.subarray(0, size));
			for (let i = 0; i < cw * ch; i++) {
				out[size + i] = both[size + 2 * i];
				out[size + cw * ch + i] = both[size + 2 * i + 1];
			}
		} else {
			throw new Error("a browser's frames are " + frame.format);
		}
	} finally {
		frame.close();
	}
	return out;
}

/* A decoder for frames of w x h: it gives one for each that it is given, in their order. */
class Decoder {
	constructor(w, h) {
		this.width = w;
		this.height = h;
		this.waiting = [];
		this.ends = false;
		this.decoder = new VideoDecoder({
			output: (frame) => this.output(frame),
			error: (e) => this.fail(e),
		});
		this.decoder.configure({ ...CONFIG, codedWidth: w, codedHeight: h });
	}

	output(frame) {
		const one = this.waiting.shift();

		if (!one)
			return frame.close();
		one.resolve(planes(frame, this.width, this.height));
		this.settle();
	}

	/* The promise of the frame's planes. */
	ask(key, data) {
		return new Promise((resolve, reject) => {
			const timer = setTimeout(() => this.fail(new Error("no frame is decoded")), PATIENCE_MS);
			const done = (how) => (what) => {
				clearTimeout(timer);
				how(what);
			};

			this.waiting.push({ resolve: done(resolve), reject: done(reject) });
			try {
				this.decoder.decode(new EncodedVideoChunk({ type: key ? "key" : "delta",
					timestamp: this.time = (this.time || 0) + FRAME_US, duration: FRAME_US, data }));
			} catch (e) {
				this.fail(e);
			}
		});
	}

	fail(error) {
		this.failed = true;
		for (const one of this.waiting.splice(0))
			one.reject(error);
		this.settle();
	}

	/* Behind the last of what was asked for it is closed, if no more is to come. */
	end() {
		this.ends = true;
		this.settle();
	}

	settle() {
		if ((this.ends || this.failed) && !this.waiting.length && this.decoder.state !== "closed")
			this.decoder.close();
	}
}

export class Vp8 {
	constructor() {
		this.decoder = null;
		this.stream = -1;
	}

	/* The picture or the connection is another one: what frames to come may need is forgotten. */
	forget() {
		if (this.decoder)
			this.decoder.end();
		this.decoder = null;
		this.stream = -1;
	}

	/* The promise of the next frame, as ImageData. */
	async decode(stream, w, h, data) {
		const key = isKey(data, w, h);
		const same = this.decoder && !this.decoder.failed && this.decoder.width === w && this.decoder.height === h;

		if (!key && (!same || this.stream !== stream))
			throw new Error("a frame needs others that did not come");
		if (!same) {
			this.forget();
			this.decoder = new Decoder(w, h);
		}
		this.stream = stream;
		try {
			return pixels.i420Image(await this.decoder.ask(key, data), w, h);
		} catch (e) {
			broken = true;
			throw e;
		}
	}
}
