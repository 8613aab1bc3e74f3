// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pixels - bodies of drawing commands to ImageData, exactly.
 *
 * Colours are 0x00RRGGBB on the wire, 0xAABBGGRR in a Uint32Array over ImageData (browsers run on
 * little-endian machines only).  Pixels "24" are B, G, R bytes without padding between rows.
 */
import { lz4Block } from "./lz4.js";

export const CODEC = { NONE: 0, LZ4: 1, DELTA_LZ4: 2, JPEG: 4, PALETTE: 5, PALETTE_LZ4: 6 };
/* What we say in HELLO: a bit for each codec. */
export const CODECS = Object.values(CODEC).reduce((mask, c) => mask | 1 << c, 0);

const OPAQUE = 0xff000000;

export const fromColour = (c) =>
	(OPAQUE | (c & 255) << 16 | (c & 0xff00) | c >> 16 & 255) >>> 0;

export const cssColour = (c) => "#" + (c & 0xffffff).toString(16).padStart(6, "0");

function image(w, h) {
	const data = new ImageData(w, h);
	return [data, new Uint32Array(data.data.buffer)];
}

function fromBgr(bytes, w, h) {
	const [data, out] = image(w, h);

	if (bytes.length !== w * h * 3)
		throw new Error("a picture has not as many bytes as pixels");
	for (let i = 0, at = 0; i < out.length; i++, at += 3)
		out[i] = OPAQUE | bytes[at] << 16 | bytes[at + 1] << 8 | bytes[at + 2];
	return data;
}

/* Each byte is the difference to the same channel of the pixel on its left. */
function fromDelta(bytes, w, h) {
	const [data, out] = image(w, h);
	let at = 0, i = 0;

	for (let y = 0; y < h; y++) {
		let b = 0, g = 0, r = 0;
		for (let x = 0; x < w; x++, at += 3, i++) {
			b = b + bytes[at] & 255;
			g = g + bytes[at + 1] & 255;
			r = r + bytes[at + 2] & 255;
			out[i] = OPAQUE | b << 16 | g << 8 | r;
		}
	}
	return data;
}

/* Indices of `bits` each, the most significant first; a row begins with a byte. */
function fromIndices(bytes, bits, colours, w, h) {
	const [data, out] = image(w, h);
	const row = Math.ceil(w * bits / 8), mask = (1 << bits) - 1;
	let i = 0;

	if (bytes.length !== row * h)
		throw new Error("a picture has not as many bytes as pixels");
	for (let y = 0; y < h; y++) {
		for (let x = 0; x < w; x++) {
			const bit = x * bits;
			const index = bytes[y * row + (bit >> 3)] >> 8 - bits - (bit & 7) & mask;
			if (index >= colours.length)
				throw new Error("a picture has more colours than its palette");
			out[i++] = colours[index];
		}
	}
	return data;
}

function fromPalette(r, w, h, packed) {
	const n = r.u8() || 256;
	if (n < 2)
		throw new Error("a palette has 2 to 256 colours");
	const colours = Array.from({ length: n }, () => fromColour(r.u32()));
	const bits = n > 16 ? 8 : n > 4 ? 4 : n > 2 ? 2 : 1;
	const bytes = packed ? lz4Block(r.rest(), Math.ceil(w * bits / 8) * h) : r.rest();

	return fromIndices(bytes, bits, colours, w, h);
}

/* RAW behind its rectangle, of any codec but JPEG. */
export function rawImage(codec, r, w, h) {
	switch (codec) {
	case CODEC.NONE:
		return fromBgr(r.rest(), w, h);
	case CODEC.LZ4:
		return fromBgr(lz4Block(r.rest(), w * h * 3), w, h);
	case CODEC.DELTA_LZ4:
		return fromDelta(lz4Block(r.rest(), w * h * 3), w, h);
	case CODEC.PALETTE:
	case CODEC.PALETTE_LZ4:
		return fromPalette(r, w, h, codec === CODEC.PALETTE_LZ4);
	default:
		throw new Error("codec " + codec + " was not agreed on");
	}
}

export function bitmapImage(r, w, h) {
	const colours = [fromColour(r.u32()), fromColour(r.u32())];
	return fromIndices(r.rest(), 1, colours, w, h);
}

/* The tile is anchored at the rectangle's corner. */
export function tiledImage(r, w, h) {
	const tw = r.u8(), th = r.u8();
	const [data, out] = image(w, h);

	r.u16();
	if (tw < 1 || th < 1 || tw > 64 || th > 64)
		throw new Error("a tile has 1 to 64 pixels a side");
	const tile = new Uint32Array(fromBgr(r.rest(), tw, th).data.buffer);
	for (let y = 0, i = 0; y < h; y++)
		for (let x = 0; x < w; x++)
			out[i++] = tile[y % th * tw + x % tw];
	return data;
}

/* A frame of video: brightness and colour as JPEG has them, by the numbers of proto/SPEC.md. */
export function i420Image(bytes, w, h) {
	const [data, out] = image(w, h);
	const half = w + 1 >> 1, u = w * h, v = u + half * (h + 1 >> 1);
	const clamped = (n) => n < 0 ? 0 : n > 255 ? 255 : n;

	if (bytes.length !== v + half * (h + 1 >> 1))
		throw new Error("a frame has not as many bytes as pixels");
	for (let y = 0, i = 0; y < h; y++) {
		for (let x = 0; x < w; x++, i++) {
			const colour = (y >> 1) * half + (x >> 1);
			const luma = bytes[i], cb = bytes[u + colour] - 128, cr = bytes[v + colour] - 128;
			const r = clamped(luma + (91881 * cr + 32768 >> 16));
			const g = clamped(luma + (-22554 * cb - 46802 * cr + 32768 >> 16));
			const b = clamped(luma + (116130 * cb + 32768 >> 16));
			out[i] = OPAQUE | b << 16 | g << 8 | r;
		}
	}
	return data;
}

/* Where in a frame each of `to` pixels has its middle: an index, the next one, and 1/256 between them. */
function places(from, to) {
	return Array.from({ length: to }, (_, at) => {
		const middle = Math.floor((2 * at + 1) * from * 128 / to) - 128;
		const place = Math.min(Math.max(middle, 0), (from - 1) * 256);
		return [place >> 8, Math.min((place >> 8) + 1, from - 1), place & 255];
	});
}

/* The picture in another size, by the numbers of proto/SPEC.md. */
export function stretchedImage(from, w, h) {
	if (from.width === w && from.height === h)
		return from;
	const [data] = image(w, h);
	const out = data.data, bytes = from.data, row = from.width * 4;
	const columns = places(from.width, w);
	let at = 0;

	for (const [y0, y1, b] of places(from.height, h)) {
		for (const [x0, x1, a] of columns) {
			for (let c = 0; c < 4; c++) {
				const above = bytes[y0 * row + 4 * x0 + c] * (256 - a) + bytes[y0 * row + 4 * x1 + c] * a;
				const below = bytes[y1 * row + 4 * x0 + c] * (256 - a) + bytes[y1 * row + 4 * x1 + c] * a;
				out[at++] = above * (256 - b) + below * b + 32768 >> 16;
			}
		}
	}
	return data;
}

export function cursorImage(bytes, w, h) {
	const data = new ImageData(w, h);

	data.data.set(bytes);
	return data;
}
