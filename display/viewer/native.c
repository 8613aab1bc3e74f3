// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun-viewer [--view-only] [--quality=N] COMMAND...: a session's display in a window of its own,
 * drawn by SDL.
 *
 * Theory of operation
 *
 * `podrun view --native` starts it with the command that is the line to the display server
 * (native_line.h).  One thread reads and decodes into a picture in memory; this one owns the
 * window: it copies what has changed into a texture, scales that to the window, and sends what is
 * typed.
 *
 * A key goes with the keysym of what it writes: SDL tells that as text right behind the key, if the
 * key writes something.  Text without a key comes from an input method and is typed.  A key that is
 * held repeats in the session; all keys are released when the window loses the keyboard.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "display/viewer/native_keys.h"
#include "display/viewer/native_line.h"
#include "display/viewer/native_sound.h"

#define TITLE	 "podrun"
#define HELD_MAX 64

struct held {
	SDL_Scancode key;
	uint32_t keysym;
	uint16_t scancode;
};

struct native {
	struct native_line *line;
	bool view_only, quit, failed, drawn;
	Uint32 woken;	    /* the type of the event */
	SDL_Window *window; /* NULL before there is a picture */
	SDL_Renderer *renderer;
	SDL_Texture *texture; /* NULL: no picture yet */
	SDL_Cursor *cursor;
	int width, height; /* of the picture */
	char *title, *notice, *clipboard;
	struct held held[HELD_MAX];
	int n_held;
	unsigned buttons;
	int x, y;
};

static void wake(void *ctx)
{
	struct native *n = ctx;
	SDL_Event event = {.type = n->woken};

	SDL_PushEvent(&event);
}

/* ---- out of the session */

static void show_title(struct native *n, bool connected)
{
	_cleanup_free_ char *text = NULL;
	const char *name = n->title ? n->title : TITLE;
	const char *state = connected ? (n->notice ? n->notice : "") : "connecting";

	if (!n->window)
		return;

	if (asprintf(&text, "%s%s%s%s", name, n->view_only ? " [view only]" : "",
		    state[0] ? " - " : "", state) >= 0)
		SDL_SetWindowTitle(n->window, text);
	else
		text = NULL;
}

static void show_cursor(struct native *n, struct native_news *news)
{
	SDL_Surface *surface;
	SDL_Cursor *fresh;

	SDL_ShowCursor(news->cursor_w ? SDL_ENABLE : SDL_DISABLE);
	if (!news->cursor_w)
		return;
	surface = SDL_CreateRGBSurfaceWithFormatFrom(news->cursor_pixels, news->cursor_w,
		news->cursor_h, 32, news->cursor_w * 4, SDL_PIXELFORMAT_RGBA32);
	fresh = surface ? SDL_CreateColorCursor(surface, news->hot_x, news->hot_y) : NULL;
	SDL_FreeSurface(surface);
	if (!fresh)
		return;
	SDL_SetCursor(fresh);
	SDL_FreeCursor(n->cursor);
	n->cursor = fresh;
}

static void fail(const char *what)
{
	fprintf(stderr, "podrun-viewer: %s: %s\n", what, SDL_GetError());
}

/* The window comes with the first picture, in its size; from there on it is the user's. */
static bool open_window(struct native *n, int width, int height)
{
	n->window = SDL_CreateWindow(TITLE, SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, width,
		height, SDL_WINDOW_RESIZABLE);
	n->renderer = n->window ? SDL_CreateRenderer(n->window, -1, 0) : NULL;
	if (n->renderer)
		return true;
	fail("no window");
	n->quit = true;
	n->failed = true;
	return false;
}

static bool make_texture(struct native *n, const struct display_frame *f)
{
	if (n->texture && n->width == f->width && n->height == f->height)
		return true;
	if (!n->window && !open_window(n, f->width, f->height))
		return false;
	SDL_DestroyTexture(n->texture);
	n->texture = SDL_CreateTexture(n->renderer, SDL_PIXELFORMAT_RGB888,
		SDL_TEXTUREACCESS_STREAMING, f->width, f->height);
	if (!n->texture)
		return false;
	n->width = f->width;
	n->height = f->height;
	return true;
}

static void copy_picture(
	struct native *n, const struct display_frame *f, const struct display_rect *changed)
{
	struct display_rect all = {0, 0, f->width, f->height}, r;
	SDL_Rect to;

	if (!f->pixels || !make_texture(n, f) || !display_rect_intersect(changed, &all, &r))
		return;
	to = (SDL_Rect){r.x, r.y, r.w, r.h};
	SDL_UpdateTexture(n->texture, &to, display_frame_at(f, r.x, r.y), f->stride * 4);
}

static void replace(char **to, char *fresh)
{
	if (!fresh)
		return;
	free(*to);
	*to = fresh;
}

/* The line has something new. */
static void look(struct native *n)
{
	struct native_news news;
	const struct display_frame *f = native_line_lock(n->line, &news);

	if (news.changed.w)
		copy_picture(n, f, &news.changed);
	native_line_unlock(n->line);
	n->drawn = n->drawn && !news.changed.w;
	replace(&n->title, news.title);
	replace(&n->notice, news.notice);
	show_title(n, news.connected);
	if (news.clipboard) {
		replace(&n->clipboard, news.clipboard);
		SDL_SetClipboardText(n->clipboard);
	}
	if (news.cursor)
		show_cursor(n, &news);
	free(news.cursor_pixels);
}

/* Where the picture is in the window: as large as fits, in the middle. */
static SDL_Rect place(struct native *n)
{
	int w = 0, h = 0;
	SDL_Rect r;

	SDL_GetWindowSize(n->window, &w, &h);
	if (n->width < 1 || w < 1 || h < 1)
		return (SDL_Rect){0, 0, 1, 1};
	r.w = MIN(w, (int)((long)h * n->width / n->height));
	r.h = MIN(h, (int)((long)w * n->height / n->width));
	r.w = r.w < 1 ? 1 : r.w;
	r.h = r.h < 1 ? 1 : r.h;
	r.x = (w - r.w) / 2;
	r.y = (h - r.h) / 2;
	return r;
}

static void draw(struct native *n)
{
	SDL_Rect to = place(n);

	SDL_SetRenderDrawColor(n->renderer, 0, 0, 0, 255);
	SDL_RenderClear(n->renderer);
	if (n->texture)
		SDL_RenderCopy(n->renderer, n->texture, NULL, &to);
	SDL_RenderPresent(n->renderer);
	n->drawn = true;
}

/* ---- into the session */

static void send(struct native *n, const struct display_message *m)
{
	if (!n->view_only)
		native_line_send(n->line, m);
}

static void send_key(struct native *n, uint32_t keysym, uint16_t scancode, bool down)
{
	struct display_message m = {.type = DISPLAY_KEY};

	m.key.keysym = keysym;
	m.key.scancode = scancode;
	m.key.down = down;
	send(n, &m);
}

static void release(struct native *n, int i)
{
	struct held h = n->held[i];

	n->held[i] = n->held[--n->n_held];
	send_key(n, h.keysym, h.scancode, false);
}

static void release_all(struct native *n)
{
	while (n->n_held)
		release(n, n->n_held - 1);
}

static int find_held(struct native *n, SDL_Scancode key)
{
	for (int i = 0; i < n->n_held; i++)
		if (n->held[i].key == key)
			return i;
	return -1;
}

static void key_down(struct native *n, const SDL_KeyboardEvent *e)
{
	struct held h = {.key = e->keysym.scancode};
	SDL_Event text;

	/* Also of a repeat, whose text would be typed otherwise. */
	if (SDL_PeepEvents(&text, 1, SDL_GETEVENT, SDL_TEXTINPUT, SDL_TEXTINPUT) == 1) {
		const char *p = text.text.text;

		h.keysym = display_native_keysym_of_text(&p);
	}
	if (find_held(n, h.key) >= 0 || n->n_held == HELD_MAX)
		return;
	if (!h.keysym)
		h.keysym = display_native_keysym(&e->keysym);
	h.scancode = display_native_scancode(h.key);
	if (!h.keysym && !h.scancode)
		return;
	n->held[n->n_held++] = h;
	send_key(n, h.keysym, h.scancode, true);
}

static void key_up(struct native *n, const SDL_KeyboardEvent *e)
{
	int i = find_held(n, e->keysym.scancode);

	if (i >= 0)
		release(n, i);
}

static void type_text(struct native *n, const char *text)
{
	while (*text) {
		uint32_t keysym = display_native_keysym_of_text(&text);

		if (keysym) {
			send_key(n, keysym, 0, true);
			send_key(n, keysym, 0, false);
		}
	}
}

static int within(int v, int low, int high)
{
	return v < low ? low : v > high ? high : v;
}

static void send_pointer(struct native *n, int wheel_x, int wheel_y)
{
	struct display_message m = {.type = DISPLAY_POINTER};

	m.pointer.x = within(n->x, 0, n->width - 1);
	m.pointer.y = within(n->y, 0, n->height - 1);
	m.pointer.buttons = (uint8_t)n->buttons;
	m.pointer.wheel_x = within(wheel_x, -127, 127);
	m.pointer.wheel_y = within(wheel_y, -127, 127);
	if (n->texture)
		send(n, &m);
}

/* From the window to the picture. */
static void locate(struct native *n, int x, int y)
{
	SDL_Rect r = place(n);

	n->x = (int)((long)(x - r.x) * n->width / r.w);
	n->y = (int)((long)(y - r.y) * n->height / r.h);
}

static void button(struct native *n, const SDL_MouseButtonEvent *e)
{
	unsigned bit = e->button >= 1 && e->button <= 5 ? 1u << (e->button - 1) : 0;

	locate(n, e->x, e->y);
	n->buttons = e->state == SDL_PRESSED ? n->buttons | bit : n->buttons & ~bit;
	send_pointer(n, 0, 0);
}

static void give_clipboard(struct native *n)
{
	struct display_message m = {.type = DISPLAY_CLIPBOARD_IN};
	char *text = SDL_GetClipboardText();

	if (text && text[0] && (!n->clipboard || strcmp(text, n->clipboard) != 0) &&
		strlen(text) <= DISPLAY_WIRE_VIEWER_MAX) {
		replace(&n->clipboard, strdup(text));
		m.data.data = (const uint8_t *)text;
		m.data.len = strlen(text);
		send(n, &m);
	}
	SDL_free(text);
}

/* ---- the window */

static void window_event(struct native *n, const SDL_WindowEvent *e)
{
	if (e->event == SDL_WINDOWEVENT_FOCUS_LOST) {
		release_all(n);
		n->buttons = 0;
	}
	n->drawn = false; /* whatever it was */
}

static void take(struct native *n, const SDL_Event *e)
{
	if (e->type == n->woken) {
		look(n);
		return;
	}
	switch (e->type) {
	case SDL_QUIT:
		n->quit = true;
		break;
	case SDL_WINDOWEVENT:
		window_event(n, &e->window);
		break;
	case SDL_KEYDOWN:
		key_down(n, &e->key);
		break;
	case SDL_KEYUP:
		key_up(n, &e->key);
		break;
	case SDL_TEXTINPUT:
		type_text(n, e->text.text);
		break;
	case SDL_MOUSEMOTION:
		locate(n, e->motion.x, e->motion.y);
		send_pointer(n, 0, 0);
		break;
	case SDL_MOUSEBUTTONDOWN:
	case SDL_MOUSEBUTTONUP:
		button(n, &e->button);
		break;
	case SDL_MOUSEWHEEL:
		send_pointer(n, e->wheel.x, -e->wheel.y);
		break;
	case SDL_CLIPBOARDUPDATE:
		give_clipboard(n);
		break;
	default:
		break;
	}
}

/* Without a screen SDL takes a driver that draws for nobody, unless it was told which one. */
static bool has_screen(void)
{
	const char *driver = SDL_GetCurrentVideoDriver();

	return getenv("SDL_VIDEODRIVER") ||
	       (driver && (strcmp(driver, "x11") == 0 || strcmp(driver, "wayland") == 0));
}

int main(int argc, char **argv)
{
	struct native n = {0};
	struct display_viewer_wish wish = {
		.name = "native", .keeps = true, .video = DISPLAY_DECODER_VIDEO};
	char **command = argv + 1;
	struct err e = {0};
	SDL_Event event;

	for (; *command && strncmp(*command, "--", 2) == 0; command++) {
		n.view_only |= strcmp(*command, "--view-only") == 0;
		sscanf(*command, "--quality=%u", &wish.quality);
	}
	wish.view_only = n.view_only;
	if (!*command) {
		fprintf(stderr, "podrun-viewer is started by podrun view --native\n");
		return 2;
	}
	if (SDL_Init(SDL_INIT_VIDEO) < 0) {
		fail("no screen");
		return 1;
	}
	if (!has_screen()) {
		fprintf(stderr,
			"podrun-viewer: no screen: neither DISPLAY nor WAYLAND_DISPLAY leads to one\n");
		return 1;
	}
	SDL_SetHint(SDL_HINT_RENDER_SCALE_QUALITY, "linear");
	SDL_SetHint(SDL_HINT_VIDEO_ALLOW_SCREENSAVER, "1");
	n.woken = SDL_RegisterEvents(1);
	SDL_StartTextInput();
	if (native_line_start(&n.line, command, &wish, native_sound_new(), wake, &n, &e) < 0) {
		fprintf(stderr, "podrun-viewer: %s\n", e.msg);
		return 1;
	}
	while (!n.quit && SDL_WaitEvent(&event)) {
		take(&n, &event);
		while (!n.quit && SDL_PollEvent(&event))
			take(&n, &event);
		if (!n.drawn && n.renderer)
			draw(&n);
	}
	/* The line's thread ends with us, and its command with its stdin. */
	release_all(&n);
	SDL_Quit();
	return n.failed;
}
