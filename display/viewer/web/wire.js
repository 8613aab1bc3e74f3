// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * wire - messages of the display protocol (proto/SPEC.md) in the bytes of a stream, and protobuf
 * as far as three small messages need it.
 *
 * A websocket message holds any number of the stream's bytes, so messages are put together here.
 * What comes is not trusted: every read is bounded and throws where bytes are missing.
 */
export const TYPE = {
	WELCOME: 1,
	RAW: 16,
	COPY: 17,
	SFILL: 18,
	BITMAP: 19,
	PFILL: 20,
	VIDEO: 21,
	CURSOR: 22,
	POINTER_AT: 23,
	AUDIO: 24,
	CLIPBOARD: 25,
	RESIZE: 26,
	NOTICE: 27,
	UPDATED: 28,
	FILE: 29,
	MARK: 30,
	KEEP: 31,
	UNCOVER: 32,
	HELLO: 64,
	KEY: 65,
	POINTER: 66,
	TO_CLIPBOARD: 67,
	WANT_RESIZE: 68,
	REFRESH: 69,
	ACK: 70,
	TO_FILE: 71,
	WANT_SCALE: 72,
};

const HEADER = 8;
const MAX_BODY = 16 << 20;

/* Calls take(type, body) for each message, in order; a body is valid as long as it is kept. */
export class Assembler {
	constructor(take) {
		this.take = take;
		this.head = new Uint8Array(HEADER);
		this.have = 0; // of head
		this.body = null;
		this.filled = 0; // of body
	}

	push(chunk) {
		let at = 0;
		while (at < chunk.length)
			at = this.body ? this.fill(chunk, at) : this.begin(chunk, at);
	}

	begin(chunk, at) {
		const n = Math.min(HEADER - this.have, chunk.length - at);
		this.head.set(chunk.subarray(at, at + n), this.have);
		this.have += n;
		at += n;
		if (this.have < HEADER)
			return at;
		const length = new DataView(this.head.buffer).getUint32(4, true);
		if (length > MAX_BODY)
			throw new Error("a message is too long");
		if (chunk.length - at >= length)
			return this.finish(chunk.subarray(at, at + length), at + length);
		this.body = new Uint8Array(length);
		this.filled = 0;
		return at;
	}

	fill(chunk, at) {
		const n = Math.min(this.body.length - this.filled, chunk.length - at);
		this.body.set(chunk.subarray(at, at + n), this.filled);
		this.filled += n;
		return this.filled < this.body.length ? at + n : this.finish(this.body, at + n);
	}

	finish(body, at) {
		this.have = 0;
		this.body = null;
		this.take(this.head[0], body);
		return at;
	}
}

/* Reads a body from its beginning. */
export class Reader {
	constructor(body) {
		this.body = body;
		this.view = new DataView(body.buffer, body.byteOffset, body.length);
		this.at = 0;
	}

	step(n) {
		if (this.at + n > this.body.length)
			throw new Error("a message is too short");
		this.at += n;
		return this.at - n;
	}

	u8() {
		return this.view.getUint8(this.step(1));
	}

	u16() {
		return this.view.getUint16(this.step(2), true);
	}

	u32() {
		return this.view.getUint32(this.step(4), true);
	}

	/* Microseconds and the like: exact to 2^53. */
	u64() {
		const low = this.u32();
		return this.u32() * 4294967296 + low;
	}

	bytes(n) {
		const from = this.step(n);
		return this.body.subarray(from, from + n);
	}

	rest() {
		return this.bytes(this.body.length - this.at);
	}
}

/* A message from a list of [size in bytes, value]; `tail` follows as it is. */
export function message(type, fields = [], tail = new Uint8Array(0)) {
	const size = fields.reduce((sum, f) => sum + f[0], 0) + tail.length;
	const out = new Uint8Array(HEADER + size);
	const view = new DataView(out.buffer);
	let at = HEADER;

	view.setUint8(0, type);
	view.setUint32(4, size, true);
	for (const [n, value] of fields) {
		if (n === 1)
			view.setUint8(at, value);
		else if (n === 2)
			view.setUint16(at, value, true);
		else
			view.setUint32(at, value, true);
		at += n;
	}
	out.set(tail, at);
	return out;
}

/* ---- protobuf: varints (numbers, booleans) and lengths (strings, bytes) */

function varint(value) {
	const out = [];
	while (value > 127) {
		out.push(value % 128 + 128);
		value = Math.floor(value / 128);
	}
	out.push(value);
	return out;
}

/* {number: value}; what is 0, false or "" is left out, as proto3 has it. */
export function protoEncode(fields) {
	const out = [];
	for (const [number, value] of Object.entries(fields)) {
		if (!value)
			continue;
		if (value instanceof Uint8Array) {
			out.push(...varint(number * 8 + 2), ...varint(value.length), ...value);
		} else if (typeof value === "string") {
			const text = new TextEncoder().encode(value);
			out.push(...varint(number * 8 + 2), ...varint(text.length), ...text);
		} else {
			out.push(...varint(number * 8), ...varint(Number(value)));
		}
	}
	return new Uint8Array(out);
}

/* {number: Number or Uint8Array}, the last value of each. */
export function protoDecode(body) {
	const r = new Reader(body), found = {};
	const number = () => {
		let value = 0, scale = 1, byte;
		do {
			byte = r.u8();
			value += (byte & 127) * scale;
			scale *= 128;
		} while (byte > 127 && scale < 2 ** 70);
		return value;
	};

	while (r.at < body.length) {
		const key = number(), field = Math.floor(key / 8);
		switch (key % 8) {
		case 0:
			found[field] = number();
			break;
		case 1:
			r.bytes(8);
			break;
		case 2:
			found[field] = r.bytes(number());
			break;
		case 5:
			r.bytes(4);
			break;
		default:
			throw new Error("a message is not protobuf");
		}
	}
	return found;
}

export const text = (bytes) => bytes ? new TextDecoder().decode(bytes) : "";
