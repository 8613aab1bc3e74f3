// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * connection - the websocket to `podrun view`, made again whenever it ends.
 *
 * The address that `podrun view` printed has a token behind the #, which works once.  For it we get
 * a ticket, which is kept for as long as this tab is there and lets us in again.  The first message
 * each way is text: ours says who we are, the answer what may be done.  Everything behind it is the
 * display protocol.
 */
const TICKET = "podrun-ticket";
const REFUSED = 4401, REPLACED = 4403; // close codes after which trying again is of no use
const FIRST_MS = 200, LAST_MS = 5000;

function credentials() {
	const token = location.hash.slice(1);

	if (token) {
		history.replaceState(null, "", location.pathname); // it is of no use to anybody now
		return "token " + token;
	}
	return "ticket " + (sessionStorage.getItem(TICKET) || "");
}

export class Connection {
	/* `events`: open(answer), data(Uint8Array), lost(reason, whether we try again). */
	constructor(events) {
		this.events = events;
		this.pause = FIRST_MS;
		this.who = credentials();
		this.open();
	}

	open() {
		const scheme = location.protocol === "https:" ? "wss://" : "ws://";
		const socket = new WebSocket(scheme + location.host + "/stream", "podrun-display");

		this.socket = socket;
		this.ready = false;
		socket.binaryType = "arraybuffer";
		socket.onopen = () => socket.send(this.who);
		socket.onmessage = (e) => socket === this.socket && this.message(e.data);
		socket.onclose = (e) => socket === this.socket && this.closed(e);
	}

	message(data) {
		if (typeof data !== "string")
			return this.events.data(new Uint8Array(data));
		const answer = JSON.parse(data);
		this.who = "ticket " + answer.ticket;
		sessionStorage.setItem(TICKET, answer.ticket);
		this.ready = true;
		this.events.open(answer);
	}

	/* Something of the display has come, so that this attempt was a good one. */
	works() {
		this.pause = FIRST_MS;
	}

	closed(e) {
		const final = e.code === REFUSED || e.code === REPLACED;

		this.ready = false;
		this.events.lost(e.reason, !final);
		if (final)
			return;
		setTimeout(() => this.open(), this.pause);
		this.pause = Math.min(this.pause * 1.6, LAST_MS);
	}

	/* False: there is no connection, and it is lost. */
	send(bytes) {
		if (!this.ready || this.socket.readyState !== WebSocket.OPEN)
			return false;
		this.socket.send(bytes);
		return true;
	}

	/* What came makes no sense: begin anew. */
	restart() {
		this.socket.close(4400, "the stream is broken");
	}
}
