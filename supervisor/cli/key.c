// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * podrun key: whose images are accepted.  One's own key is made on first use.
 */
#include <string.h>

#include "proto/proto.h"
#include "supervisor/cli/cli.h"

static int show_one(void *ctx, const uint8_t key[PROTO_KEY_LEN], const char *comment)
{
	char text[PROTO_KEY_TEXT_LEN];

	proto_key_format(key, text);
	printf("%s %s\n", text, comment ? comment : "");
	return 0;
}

static int show(struct cli *c, int argc, char **argv, struct err *e)
{
	uint8_t own[PROTO_KEY_LEN];
	struct proto_key *k;
	int r = proto_key_open(&k, c->paths.config, e);

	if (r < 0)
		return r;
	proto_key_public(k, own);
	proto_key_close(k);
	show_one(NULL, own, "(own)");
	return proto_trust_list(c->paths.config, show_one, NULL, e);
}

static int trust(struct cli *c, int argc, char **argv, struct err *e)
{
	uint8_t key[PROTO_KEY_LEN];

	if (proto_key_parse(argv[0], key, e) < 0)
		return err_reclass(e, ERR_USAGE);
	return proto_trust_add(c->paths.config, key, argc > 1 ? argv[1] : "", e);
}

static int forget(struct cli *c, int argc, char **argv, struct err *e)
{
	uint8_t key[PROTO_KEY_LEN];

	if (proto_key_parse(argv[0], key, e) < 0)
		return err_reclass(e, ERR_USAGE);
	return proto_trust_remove(c->paths.config, key, e);
}

static const struct {
	const char *name;
	int min, max; /* operands */
	int (*run)(struct cli *c, int argc, char **argv, struct err *e);
} verbs[] = {
	{"show", 0, 0, show},
	{"trust", 1, 2, trust},
	{"rm", 1, 1, forget},
};

static int run(struct cli *c, void *opts, int argc, char **argv, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(argv[0], verbs[i].name) == 0 && argc - 1 >= verbs[i].min &&
			argc - 1 <= verbs[i].max)
			return verbs[i].run(c, argc - 1, argv + 1, e);
	return err_set(e, ERR_USAGE, -EINVAL, "usage: podrun key show | trust KEY [COMMENT] | rm KEY");
}

const struct cli_command cli_key = {
	.name = "key",
	.usage = "show | trust KEY [COMMENT] | rm KEY",
	.help = "whose images are accepted",
	.text = "Images are signed. Those signed with one's own key are always accepted, others only after "
		"*podrun key trust*, with the key that *podrun key show* prints over there.",
	.verbs = "show trust rm",
	.group = CLI_MORE,
	.min_operands = 1,
	.max_operands = 3,
	.run = run,
};
