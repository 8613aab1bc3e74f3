// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * keymap - what a KeyboardEvent is in X: a keysym (what is on the key) and the evdev scancode of
 * linux/input-event-codes.h (where the key is).
 */

/* KeyboardEvent.code, in the order of evdev scancodes from 1; "" is none. */
const FROM_1 =
	"Escape Digit1 Digit2 Digit3 Digit4 Digit5 Digit6 Digit7 Digit8 Digit9 Digit0 Minus Equal " +
	"Backspace Tab KeyQ KeyW KeyE KeyR KeyT KeyY KeyU KeyI KeyO KeyP BracketLeft BracketRight " +
	"Enter ControlLeft KeyA KeyS KeyD KeyF KeyG KeyH KeyJ KeyK KeyL Semicolon Quote Backquote " +
	"ShiftLeft Backslash KeyZ KeyX KeyC KeyV KeyB KeyN KeyM Comma Period Slash ShiftRight " +
	"NumpadMultiply AltLeft Space CapsLock F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 NumLock ScrollLock " +
	"Numpad7 Numpad8 Numpad9 NumpadSubtract Numpad4 Numpad5 Numpad6 NumpadAdd Numpad1 Numpad2 " +
	"Numpad3 Numpad0 NumpadDecimal - Lang5 IntlBackslash F11 F12 IntlRo Lang3 Lang4 Convert " +
	"KanaMode NonConvert - NumpadEnter ControlRight NumpadDivide PrintScreen AltRight - Home " +
	"ArrowUp PageUp ArrowLeft ArrowRight End ArrowDown PageDown Insert Delete - AudioVolumeMute " +
	"AudioVolumeDown AudioVolumeUp Power NumpadEqual - Pause - NumpadComma Lang1 Lang2 IntlYen " +
	"MetaLeft MetaRight ContextMenu";

const SCANCODES = new Map(FROM_1.split(" ").map((code, i) => [code, i + 1]));
SCANCODES.delete("-");
SCANCODES.set("OSLeft", 125).set("OSRight", 126);
for (let i = 13; i <= 24; i++)
	SCANCODES.set("F" + i, 183 + i - 13);

/* KeyboardEvent.key of keys that write nothing: [on the left or the only one, right, keypad]. */
const NAMED = {
	Backspace: [0xff08], Tab: [0xff09], Enter: [0xff0d, , 0xff8d], Escape: [0xff1b],
	Delete: [0xffff, , 0xff9f], Home: [0xff50, , 0xff95], ArrowLeft: [0xff51, , 0xff96],
	ArrowUp: [0xff52, , 0xff97], ArrowRight: [0xff53, , 0xff98],
	ArrowDown: [0xff54, , 0xff99], PageUp: [0xff55, , 0xff9a], PageDown: [0xff56, , 0xff9b],
	End: [0xff57, , 0xff9c], Insert: [0xff63, , 0xff9e], Clear: [0xff0b, , 0xff9d],
	Pause: [0xff13], ScrollLock: [0xff14], PrintScreen: [0xff61], ContextMenu: [0xff67],
	NumLock: [0xff7f], CapsLock: [0xffe5],
	Shift: [0xffe1, 0xffe2], Control: [0xffe3, 0xffe4], Alt: [0xffe9, 0xffea],
	Meta: [0xffeb, 0xffec], OS: [0xffeb, 0xffec], Super: [0xffeb, 0xffec],
	AltGraph: [0xfe03, 0xfe03],
	Convert: [0xff23], NonConvert: [0xff22], KanaMode: [0xff2d], HangulMode: [0xff31],
	HanjaMode: [0xff34], ZenkakuHankaku: [0xff2a], Hiragana: [0xff25], Katakana: [0xff26],
	Eisu: [0xff2f], Compose: [0xff20], Undo: [0xff65], Redo: [0xff66], Find: [0xff68],
	Help: [0xff6a], Cancel: [0xff69], Select: [0xff60], Execute: [0xff62],
	AudioVolumeMute: [0x1008ff12], AudioVolumeDown: [0x1008ff11], AudioVolumeUp: [0x1008ff13],
	MediaPlayPause: [0x1008ff14], MediaStop: [0x1008ff15], MediaTrackPrevious: [0x1008ff16],
	MediaTrackNext: [0x1008ff17], BrowserBack: [0x1008ff26], BrowserForward: [0x1008ff27],
};
for (let i = 1; i <= 24; i++)
	NAMED["F" + i] = [0xffbe + i - 1];

/* What keys of the keypad write. */
const KEYPAD = { "+": 0xffab, "-": 0xffad, "*": 0xffaa, "/": 0xffaf, "=": 0xffbd,
	".": 0xffae, ",": 0xffac };
for (let i = 0; i <= 9; i++)
	KEYPAD[i] = 0xffb0 + i;


const RIGHT = 2, NUMPAD = 3; // KeyboardEvent.location

/* Of one character: Latin-1 is its own keysym, everything else is counted from 0x01000000. */
export function keysymOfCharacter(c) {
	const code = c.codePointAt(0);

	if (code === 10 || code === 13)
		return 0xff0d;
	if (code === 9)
		return 0xff09;
	if (code < 32 || code === 127)
		return 0;
	return code < 127 || (code >= 160 && code <= 255) ? code : 0x01000000 + code;
}

/* 0: none, as of dead keys, where only the place is known. */
export function keysymOf(event) {
	const named = Object.hasOwn(NAMED, event.key) ? NAMED[event.key] : null;

	if (named) {
		const at = event.location === RIGHT ? 1 : event.location === NUMPAD ? 2 : 0;
		return named[at] || named[0];
	}
	if (event.location === NUMPAD && Object.hasOwn(KEYPAD, event.key))
		return KEYPAD[event.key];
	return [...event.key].length === 1 ? keysymOfCharacter(event.key) : 0;
}

export const scancodeOf = (event) => SCANCODES.get(event.code) || 0;
