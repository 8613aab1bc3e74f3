// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * main - the page of `podrun view`: a session's display in a browser.
 *
 *      connection -> Assembler (wire) -> Screen -> canvas
 *                                           '-> what is no drawing: cursor, sound, clipboard, notices
 *      Keyboard, Mouse, Clipboard -> message (wire) -> connection
 *
 * Nothing is kept about the session: when the connection is made again, all of it comes anew.
 */
import { Assembler, Reader, TYPE, message, protoDecode, protoEncode, text } from "./wire.js";
import { CODECS, cursorImage } from "./pixels.js";
import { Screen, videoFormats } from "./screen.js";
import { Connection } from "./connection.js";
import { Keyboard } from "./keyboard.js";
import { Mouse } from "./mouse.js";
import { Sound } from "./sound.js";
import { Files } from "./files.js";
import { Clipboard, MAX_BYTES } from "./clipboard.js";

const VIEW = 1; // DisplayWelcome.Role
const RUNNING = 0, MOVED = 3;
const TOLD_MS = 5000;
const NOTICES = ["", "paused", "suspended: it goes on when it is resumed", "moved", "ended", "refused"];

const $ = (id) => document.getElementById(id);
const canvas = $("screen");

let assembler = null;
let viewOnly = false;
let welcomed = false; // on this connection

/* ---- what is shown beside the picture */

function say(what) {
	$("notice").textContent = what;
	$("notice").hidden = !what;
}

function sayForAWhile(what) {
	say(what);
	setTimeout(() => $("notice").textContent === what && say(""), TOLD_MS);
}

function showName(name) {
	document.title = name ? name + " - podrun" : "podrun";
	$("name").textContent = name + (viewOnly ? " (view only)" : "");
}

function notice(body) {
	const found = protoDecode(body);
	const kind = found[1] || 0;
	const words = [NOTICES[kind] ?? "", kind === MOVED && found[3] ? "to " + text(found[3]) : "",
		text(found[2])];

	if (found[4])
		showName(text(found[4]));
	if (kind === RUNNING)
		sayForAWhile(text(found[2]));
	else
		say("The session is " + words.filter(Boolean).join("\n"));
}

function cursor(body) {
	const r = new Reader(body);
	const [x, y, w, h] = [r.u16(), r.u16(), r.u16(), r.u16()];

	if (!w || !h) {
		canvas.style.cursor = "none";
		return;
	}
	if (w > 512 || h > 512)
		throw new Error("a cursor of " + w + "x" + h);
	const picture = document.createElement("canvas");
	picture.width = w;
	picture.height = h;
	picture.getContext("2d").putImageData(cursorImage(r.bytes(w * h * 4), w, h), 0, 0);
	canvas.style.cursor = "url(" + picture.toDataURL() + ") " + x + " " + y + ", default";
	/* As large as the picture around it, by browsers that can. */
	if (pixelSize() > 1)
		canvas.style.cursor = "image-set(url(" + picture.toDataURL() + ") " + pixelSize() + "x) " +
			Math.floor(x / pixelSize()) + " " + Math.floor(y / pixelSize()) + ", default";
}

function welcome(body) {
	const found = protoDecode(body);

	screen.resize(found[2] || 0, found[3] || 0);
	welcomed = true;
	viewOnly = viewOnly || found[4] === VIEW;
	showName(text(found[5]));
	say("");
	clipboard.restart();
	files.restart(Boolean(found[10]) && !viewOnly);
	$("share").hidden = !files.allowed;
	$("files").hidden = true;
	wantSize();
}

/* ---- the display's messages */

const screen = new Screen(canvas, {
	updated(serial) {
		canvas.dataset.updated = serial;
		connection.send(message(TYPE.ACK, [[4, serial]]));
	},
	marked(serial) {
		connection.send(message(TYPE.ACK, [[4, serial]]));
	},
	resized() {
		canvas.hidden = false;
		sharpen();
	},
	blank() {
		if (welcomed) // else all of it is yet to come
			connection.send(message(TYPE.REFRESH,
				[[2, 0], [2, 0], [2, canvas.width], [2, canvas.height]]));
	},
	failed(error) {
		console.error(error);
		connection.restart();
	},
	other(type, body) {
		if (type === TYPE.WELCOME)
			welcome(body);
		else if (type === TYPE.CURSOR)
			cursor(body);
		else if (type === TYPE.NOTICE)
			notice(body);
		else if (type === TYPE.AUDIO)
			sound.take(body);
		else if (type === TYPE.FILE)
			files.take(body);
		else if (type === TYPE.CLIPBOARD && body.length <= MAX_BYTES)
			clipboard.take(text(body));
	},
});

videoFormats(); // it takes a while to find out
const connection = new Connection({
	async open(answer) {
		const own = assembler = new Assembler((type, body) => screen.take(type, body));

		viewOnly = Boolean(answer.viewOnly);
		welcomed = false;
		screen.restart();
		const video = await videoFormats();
		if (own !== assembler)
			return; // that connection has ended
		connection.send(message(TYPE.HELLO, [], protoEncode({
			1: 1, 3: CODECS, 4: video, 5: answer.quality, 8: viewOnly,
			10: Sound.possible, 11: "browser", 12: true,
		})));
	},
	data(bytes) {
		try {
			assembler.push(bytes);
			connection.works();
		} catch (e) {
			console.error(e);
			connection.restart();
		}
	},
	lost(reason, again) {
		keyboard.releaseAll();
		welcomed = false;
		say((reason || "The connection has ended.") + (again ? "\nTrying again..." : ""));
	},
});

const sound = new Sound();

/* ---- input */

/* Nothing may come before HELLO. */
const input = (...fields) => !viewOnly && welcomed && connection.send(message(...fields));

const keyboard = new Keyboard($("keys"),
	(keysym, scancode, down) =>
		input(TYPE.KEY, [[4, keysym], [2, scancode], [1, down], [1, 0]]),
	(pasted) => {
		const fits = clipboard.fits(pasted);

		clipboard.give(pasted);
		if (!fits)
			sayForAWhile("What is to be pasted is too long: the session takes 1 MiB of text.");
		return fits;
	});

new Mouse(canvas,
	(x, y, buttons, wheelX, wheelY) => input(TYPE.POINTER,
		[[2, x], [2, y], [1, buttons], [1, 0], [1, wheelX & 255], [1, wheelY & 255]]),
	(e) => e.pointerType === "touch" || keyboard.focus());

const files = new Files((bytes) => viewOnly || connection.send(bytes),
	{ drop: document.documentElement, choose: $("choose"), list: $("list"), told: $("told") });

const clipboard = new Clipboard(
	(what) => input(TYPE.TO_CLIPBOARD, [], new TextEncoder().encode(what)));

/* ---- the bar; what is chosen is kept for the next time */

function choose(name, fallback, changed) {
	const button = $(name);
	const show = (on) => button.classList.toggle("on", on);
	const stored = localStorage.getItem(name);

	show(stored === null ? fallback : stored === "1");
	button.addEventListener("click", () => {
		const on = !button.classList.contains("on");
		localStorage.setItem(name, on ? "1" : "0");
		show(on);
		changed(on);
		keyboard.focus();
	});
	changed(button.classList.contains("on"));
}

/*
 * Where the session has this window's size, a pixel of it is one of the screen, of which CSS
 * counts so many as one.
 */
function pixelSize() {
	return $("resize").classList.contains("on") ? Math.max(1, Math.min(devicePixelRatio, 4)) : 1;
}

function sharpen() {
	canvas.style.width = pixelSize() > 1 ? canvas.width / pixelSize() + "px" : "";
}

function wantSize() {
	sharpen();
	if (!$("resize").classList.contains("on"))
		return;
	const side = (css) => Math.max(64, Math.min(Math.round(css * pixelSize()), 8192));
	input(TYPE.WANT_RESIZE, [[2, side(innerWidth)], [2, side(innerHeight)]]);
	input(TYPE.WANT_SCALE, [[2, Math.round(pixelSize() * 100)], [2, 0]]);
}

choose("fit", true, (on) => $("stage").classList.toggle("fit", on));
choose("resize", false, wantSize);
$("share").addEventListener("click", () => {
	$("files").hidden = !$("files").hidden;
	if (!$("files").hidden)
		files.ask();
});
choose("sound", true, (on) => sound.enable(on));
$("sound").hidden = !Sound.possible;
let resizing;
addEventListener("resize", () => {
	clearTimeout(resizing);
	resizing = setTimeout(wantSize, 200);
});
function watchDensity() {
	matchMedia("(resolution: " + devicePixelRatio + "dppx)").addEventListener("change", () => {
		wantSize();
		watchDensity();
	}, { once: true });
}
watchDensity();
$("full").addEventListener("click", async () => {
	await (document.fullscreenElement ? document.exitFullscreen()
		: document.documentElement.requestFullscreen());
	/* Escape, Alt-Tab and the like for the session, where the browser gives them away. */
	if (document.fullscreenElement && navigator.keyboard)
		navigator.keyboard.lock().catch(() => {});
	keyboard.focus();
});
$("board").addEventListener("click", () => keyboard.focus());
addEventListener("focus", () => keyboard.focus());
keyboard.focus();
