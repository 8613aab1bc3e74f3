// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sound - plays the session's sound (Opus, 48 kHz, stereo) where the browser can decode it.
 *
 * Browsers let a page be heard only after a key or a click in it: what comes before is not decoded.
 * Packets are put one behind the other on the clock of the loudspeaker, a little ahead of it.  When
 * that has run dry it begins anew; what comes too far ahead of it is dropped, for the line has
 * stood still and then sent everything at once.
 */
import { Reader } from "./wire.js";

const RATE = 48000, CHANNELS = 2, PACKET_US = 20000;
const AHEAD = 0.06, MOST = 0.3; // seconds
const MAX_WAITING = 10; // packets in the decoder

export class Sound {
	constructor() {
		this.context = null;
		this.decoder = null;
		this.on = true;
		for (const name of ["keydown", "pointerdown"])
			window.addEventListener(name, () => this.begin(), true);
	}

	static get possible() {
		return typeof AudioDecoder === "function" && typeof AudioContext === "function";
	}

	/* In answer to the user. */
	begin() {
		if (!Sound.possible || !this.on)
			return;
		if (!this.context)
			this.context = new AudioContext({ sampleRate: RATE });
		if (this.context.state === "suspended")
			this.context.resume().catch(() => {});
	}

	enable(on) {
		this.on = on;
		if (on && navigator.userActivation?.hasBeenActive)
			this.begin();
		else if (!on && this.context)
			this.context.suspend();
	}

	open() {
		this.at = 0;
		this.decoder = new AudioDecoder({
			output: (data) => this.play(data),
			error: (e) => console.warn("sound: " + e.message),
		});
		this.decoder.configure({ codec: "opus", sampleRate: RATE, numberOfChannels: CHANNELS });
	}

	/* The body of an AUDIO. */
	take(body) {
		const r = new Reader(body), timestamp = r.u64(), data = r.rest();

		if (!this.on || !this.context || this.context.state !== "running")
			return;
		/* A packet that is none closes the decoder; the next one may be good. */
		if (!this.decoder || this.decoder.state === "closed")
			this.open();
		if (this.decoder.decodeQueueSize < MAX_WAITING)
			this.decoder.decode(new EncodedAudioChunk({
				type: "key", timestamp, duration: PACKET_US, data,
			}));
	}

	play(data) {
		const now = this.context.currentTime;

		if (this.at < now)
			this.at = now + AHEAD;
		if (this.at < now + MOST) {
			const buffer = this.context.createBuffer(CHANNELS, data.numberOfFrames, RATE);
			const source = this.context.createBufferSource();

			for (let i = 0; i < CHANNELS; i++)
				data.copyTo(buffer.getChannelData(i), {
					planeIndex: Math.min(i, data.numberOfChannels - 1), format: "f32-planar",
				});
			source.buffer = buffer;
			source.connect(this.context.destination);
			source.start(this.at);
			this.at += buffer.duration;
		}
		data.close();
	}
}
