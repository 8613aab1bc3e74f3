// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * lz4 - one block (lz4_Block_format.md) to as many bytes as the caller knows it to have.
 *
 * A sequence is a token (lengths of literals and match), literals, and a distance back; the last
 * one has literals only.  Typed arrays ignore writes beyond their end and read undefined there, so
 * each length is checked before anything is copied.
 */
const broken = () => new Error("lz4: the block is broken");

export function lz4Block(from, size) {
	const to = new Uint8Array(size);
	let at = 0, out = 0;

	const length = (n) => {
		let byte = n === 15 ? 255 : 0;
		while (byte === 255) {
			if (at >= from.length)
				throw broken();
			byte = from[at++];
			n += byte;
		}
		return n;
	};

	while (at < from.length) {
		const token = from[at++];
		const literals = length(token >> 4);
		if (literals > from.length - at || literals > size - out)
			throw broken();
		to.set(from.subarray(at, at + literals), out);
		at += literals;
		out += literals;
		if (at === from.length)
			break;
		if (at + 2 > from.length)
			throw broken();
		const back = from[at] | from[at + 1] << 8;
		at += 2;
		const match = length(token & 15) + 4;
		if (back === 0 || back > out || match > size - out)
			throw broken();
		if (back >= match)
			to.copyWithin(out, out - back, out - back + match);
		else
			for (let i = 0; i < match; i++)
				to[out + i] = to[out + i - back];
		out += match;
	}
	if (out !== size)
		throw broken();
	return to;
}
