// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * X has two names for most characters: one from before Unicode, of 0x100 to 0x20ff, by which
 * layouts call them, and 0x01000000 more than the character's number, by which viewers do.  Both
 * are brought to that number here (X11 Protocol, appendix A).  Latin 1 has only one name.
 *
 * What is a page of the old names here has its characters from 0xa0 on; a space is none.  Pages
 * that have Unicode's order are runs.  Not here is what no layout has by its old name: Katakana,
 * Hangul, APL, and what terminals draw lines with.
 */
#include "display/x/keysym.h"

#include <uchar.h>

#include "base/base.h"

#define SYM_UNICODE  0x01000000u
#define UNICODE_LAST 0x10ffffu
#define PAGE_FIRST   0xa0

static const char16_t *const pages[] = {
	/* Latin 2 */
	[0x1] =
		u" \u0104\u02d8\u0141 \u013d\u015a  \u0160\u015e\u0164\u0179 \u017d\u017b \u0105"
		u"\u02db\u0142 \u013e\u015b\u02c7 \u0161\u015f\u0165\u017a\u02dd\u017e\u017c"
		u"\u0154  \u0102 \u0139\u0106 \u010c \u0118 \u011a  \u010e\u0110\u0143\u0147  "
		u"\u0150  \u0158\u016e \u0170  \u0162 \u0155  \u0103 \u013a\u0107 \u010d \u0119 "
		u"\u011b  \u010f\u0111\u0144\u0148  \u0151  \u0159\u016f \u0171  \u0163\u02d9",
	/* Latin 3 */
	[0x2] =
		u" \u0126    \u0124  \u0130 \u011e\u0134    \u0127    \u0125  \u0131 \u011f"
		u"\u0135        \u010a\u0108              \u0120  \u011c    \u016c\u015c      "
		u"\u010b\u0109              \u0121  \u011d    \u016d\u015d",
	/* Latin 4 */
	[0x3] =
		u"  \u0138\u0156 \u0128\u013b   \u0112\u0122\u0166      \u0157 \u0129\u013c   "
		u"\u0113\u0123\u0167\u014a \u014b\u0100      \u012e    \u0116  \u012a \u0145"
		u"\u014c\u0136     \u0172   \u0168\u016a \u0101      \u012f    \u0117  \u012b "
		u"\u0146\u014d\u0137     \u0173   \u0169\u016b",
	/* Cyrillic */
	[0x6] =
		u" \u0452\u0453\u0451\u0454\u0455\u0456\u0457\u0458\u0459\u045a\u045b\u045c"
		u"\u0491\u045e\u045f\u2116\u0402\u0403\u0401\u0404\u0405\u0406\u0407\u0408\u0409"
		u"\u040a\u040b\u040c\u0490\u040e\u040f\u044e\u0430\u0431\u0446\u0434\u0435\u0444"
		u"\u0433\u0445\u0438\u0439\u043a\u043b\u043c\u043d\u043e\u043f\u044f\u0440\u0441"
		u"\u0442\u0443\u0436\u0432\u044c\u044b\u0437\u0448\u044d\u0449\u0447\u044a\u042e"
		u"\u0410\u0411\u0426\u0414\u0415\u0424\u0413\u0425\u0418\u0419\u041a\u041b\u041c"
		u"\u041d\u041e\u041f\u042f\u0420\u0421\u0422\u0423\u0416\u0412\u042c\u042b\u0417"
		u"\u0428\u042d\u0429\u0427\u042a",
	/* Greek */
	[0x7] =
		u" \u0386\u0388\u0389\u038a\u03aa \u038c\u038e\u03ab \u038f  \u0385\u2015 \u03ac"
		u"\u03ad\u03ae\u03af\u03ca\u0390\u03cc\u03cd\u03cb\u03b0\u03ce     \u0391\u0392"
		u"\u0393\u0394\u0395\u0396\u0397\u0398\u0399\u039a\u039b\u039c\u039d\u039e\u039f"
		u"\u03a0\u03a1\u03a3 \u03a4\u03a5\u03a6\u03a7\u03a8\u03a9       \u03b1\u03b2"
		u"\u03b3\u03b4\u03b5\u03b6\u03b7\u03b8\u03b9\u03ba\u03bb\u03bc\u03bd\u03be\u03bf"
		u"\u03c0\u03c1\u03c3\u03c2\u03c4\u03c5\u03c6\u03c7\u03c8\u03c9",
	/* technical */
	[0x8] =
		u" \u23b7\u250c\u2500\u2320\u2321\u2502\u23a1\u23a3\u23a4\u23a6\u239b\u239d"
		u"\u239e\u23a0\u23a8\u23ac           \u2264\u2260\u2265\u222b\u2234\u221d\u221e "
		u" \u2207  \u223c\u2243   \u21d4\u21d2\u2261      \u221a   \u2282\u2283\u2229"
		u"\u222a\u2227\u2228               \u2202      \u0192    \u2190\u2191\u2192"
		u"\u2193",
	/* publishing */
	[0xa] =
		u" \u2003\u2002\u2004\u2005\u2007\u2008\u2009\u200a\u2014\u2013 \u2423 \u2026"
		u"\u2025\u2153\u2154\u2155\u2156\u2157\u2158\u2159\u215a\u2105  \u2012\u27e8."
		u"\u27e9    \u215b\u215c\u215d\u215e  \u2122\u2613 \u25c1\u25b7\u25cb\u25af"
		u"\u2018\u2019\u201c\u201d\u211e\u2030\u2032\u2033 \u271d \u25ac\u25c0\u25b6"
		u"\u25cf\u25ae\u25e6\u25ab\u25ad\u25b3\u25bd\u2606\u2022\u25aa\u25b2\u25bc\u261c"
		u"\u261e\u2663\u2666\u2665 \u2720\u2020\u2021\u2713\u2717\u266f\u266d\u2642"
		u"\u2640\u260e\u2315\u2117\u2038\u201a\u201e",
	/* Latin 9 */
	[0x13] =
		u"                            \u0152\u0153\u0178",

};

static const struct run {
	uint16_t first, last;
	uint16_t character; /* of the first */
} runs[] = {
	{0x5ac, 0x5f2, 0x60c},	/* Arabic */
	{0xce0, 0xcfa, 0x5d0},	/* Hebrew */
	{0xda1, 0xdf9, 0xe01},	/* Thai */
	{0x20ac, 0x20ac, 0x20ac}, /* the Euro; other currencies have no old name */
};

static size_t length(const char16_t *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

static uint32_t of_old_name(xcb_keysym_t s)
{
	const xcb_keysym_t page = s >> 8, i = (s & 0xff) - PAGE_FIRST;

	for (size_t r = 0; r < ARRAY_SIZE(runs); r++)
		if (s >= runs[r].first && s <= runs[r].last)
			return s - runs[r].first + runs[r].character;
	if (page >= ARRAY_SIZE(pages) || !pages[page] || i >= length(pages[page]))
		return 0;
	return pages[page][i] == u' ' ? 0 : pages[page][i];
}

static bool is_latin_1(uint32_t c)
{
	return (c >= 0x20 && c < 0x7f) || (c >= 0xa0 && c <= 0xff);
}

uint32_t display_x_keysym_character(xcb_keysym_t s)
{
	if (is_latin_1(s))
		return s;
	if (s >= SYM_UNICODE)
		return s - SYM_UNICODE <= UNICODE_LAST ? s - SYM_UNICODE : 0;
	return of_old_name(s);
}

bool display_x_keysym_same(xcb_keysym_t a, xcb_keysym_t b)
{
	const uint32_t c = display_x_keysym_character(a);

	return a == b || (c && c == display_x_keysym_character(b));
}

bool display_x_keysym_is_modifier(xcb_keysym_t s)
{
	return (s >= 0xffe1 && s <= 0xffee) || /* Shift_L to Hyper_R */
		(s >= 0xfe01 && s <= 0xfe13) || /* ISO_Lock to ISO_Level5_Lock */
		s == 0xff7e || s == 0xff7f;	/* Mode_switch, Num_Lock */
}

bool display_x_keysym_may_have_case(xcb_keysym_t s)
{
	const uint32_t c = display_x_keysym_character(s);

	return (c >= 'a' && c <= 'z') || c == 0xb5 || (c >= 0xdf && c <= 0x24f) ||
		(c >= 0x370 && c <= 0x587) || (c >= 0x1e00 && c <= 0x1fff);
}
