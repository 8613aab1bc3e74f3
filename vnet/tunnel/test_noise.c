// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The handshake, byte by byte against another implementation (make_vectors.py), and against
 * forgery.
 */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "vnet/tunnel/cookie.h"
#include "vnet/tunnel/index.h"
#include "vnet/tunnel/noise.h"
#include "vnet/tunnel/replay.h"
#include "vnet/tunnel/test_vectors.h"

#define S 1000000000ULL

struct both {
	struct vnet_noise_identity i, r;     /* who they are */
	struct vnet_noise_remote to_r, to_i; /* and what they know of each other */
	struct vnet_noise_handshake hs_i, hs_r;
};

static void both_init(struct both *b)
{
	assert_int_equal(vnet_noise_identity(&b->i, vector_initiator_private), 0);
	assert_int_equal(vnet_noise_identity(&b->r, vector_responder_private), 0);
	assert_int_equal(vnet_noise_remote(&b->to_r, &b->i, b->r.public, vector_preshared), 0);
	assert_int_equal(vnet_noise_remote(&b->to_i, &b->r, b->i.public, vector_preshared), 0);
}

static void initiate(struct both *b, struct vnet_initiation *m)
{
	struct vnet_cookie_jar jar;

	assert_int_equal(vnet_noise_initiate(&b->hs_i, &b->i, &b->to_r, vector_initiator_ephemeral,
				 vector_stamp, VECTOR_INITIATOR, m),
		0);
	assert_int_equal(vnet_cookie_jar_init(&jar, b->r.public), 0);
	assert_int_equal(vnet_cookie_sign(&jar, m, sizeof(*m), S), 0);
}

static void vectors(void **state)
{
	struct both b;
	struct vnet_initiation first;
	struct vnet_response second;
	struct vnet_noise_keys keys_i, keys_r;
	struct vnet_cookie_jar jar;
	struct vnet_cipher *seal, *open;
	uint8_t data[sizeof(vector_data)];

	both_init(&b);
	assert_memory_equal(b.i.public, vector_initiator_public, VNET_KEY_LEN);
	assert_memory_equal(b.r.public, vector_responder_public, VNET_KEY_LEN);
	initiate(&b, &first);
	assert_memory_equal(&first, vector_initiation, sizeof(first));

	assert_int_equal(vnet_noise_consume(&b.hs_r, &b.r, &first), 0);
	assert_memory_equal(b.hs_r.remote_static, vector_initiator_public, VNET_KEY_LEN);
	assert_int_equal(vnet_noise_admit(&b.hs_r, &b.to_i, &first), 0);
	assert_memory_equal(b.hs_r.stamp, vector_stamp, sizeof(vector_stamp));
	assert_int_equal(vnet_noise_respond(&b.hs_r, &b.to_i, vector_responder_ephemeral,
				 VECTOR_RESPONDER, &second, &keys_r),
		0);
	assert_int_equal(vnet_cookie_jar_init(&jar, b.i.public), 0);
	assert_int_equal(vnet_cookie_sign(&jar, &second, sizeof(second), S), 0);
	assert_memory_equal(&second, vector_response, sizeof(second));

	assert_int_equal(vnet_noise_finish(&b.hs_i, &b.i, &b.to_r, &second, &keys_i), 0);
	assert_int_equal(b.hs_i.remote, VECTOR_RESPONDER);
	assert_memory_equal(keys_i.send, vector_initiator_send, VNET_KEY_LEN);
	assert_memory_equal(keys_i.receive, vector_initiator_receive, VNET_KEY_LEN);
	assert_memory_equal(keys_r.receive, keys_i.send, VNET_KEY_LEN);
	assert_memory_equal(keys_r.send, keys_i.receive, VNET_KEY_LEN);

	seal = vnet_cipher_new(keys_i.send, true);
	open = vnet_cipher_new(keys_r.receive, false);
	assert_true(seal && open);
	memcpy(data + sizeof(struct vnet_data), vector_packet, sizeof(vector_packet));
	for (int i = 0; i < 2; i++) { /* a context can be used again */
		assert_int_equal(
			vnet_cipher_seal(seal, 7, data + 16, sizeof(vector_packet), data + 16), 0);
		assert_memory_equal(data + 16, vector_data + 16, sizeof(vector_data) - 16);
		assert_int_equal(vnet_cipher_open(open, 8, data + 16, sizeof(data) - 16, data + 16),
			-EBADMSG);
		memcpy(data, vector_data, sizeof(data));
		assert_int_equal(
			vnet_cipher_open(open, 7, data + 16, sizeof(data) - 16, data + 16), 0);
		assert_memory_equal(data + 16, vector_packet, sizeof(vector_packet));
	}
	vnet_cipher_free(seal);
	vnet_cipher_free(open);
}

/* Each bit of both messages matters to somebody. */
static void forged(void **state)
{
	struct both b;
	struct vnet_initiation first;
	struct vnet_response second;
	struct vnet_noise_keys keys;
	struct vnet_cookie_guard guard;
	struct vnet_noise_handshake before;
	uint8_t zeros[VNET_KEY_LEN] = {0};
	struct vnet_noise_remote none;

	both_init(&b);
	initiate(&b, &first);
	assert_int_equal(vnet_cookie_guard_init(&guard, b.r.public), 0);
	for (size_t i = 0; i < sizeof(first) - VNET_MAC_LEN; i++) {
		struct vnet_initiation bad = first;

		((uint8_t *)&bad)[i] ^= 1 << i % 8;
		assert_int_equal(vnet_cookie_check(&guard, &bad, sizeof(bad), "here", 4, S),
			VNET_COOKIE_FALSE);
		if (i < 8 || i >= sizeof(first) - sizeof(first.macs))
			continue;
		assert_true(vnet_noise_consume(&b.hs_r, &b.r, &bad) == -EBADMSG ||
			    vnet_noise_admit(&b.hs_r, &b.to_i, &bad) == -EBADMSG);
	}
	assert_int_equal(vnet_noise_consume(&b.hs_r, &b.r, &first), 0);
	assert_int_equal(vnet_noise_admit(&b.hs_r, &b.to_i, &first), 0);
	assert_int_equal(vnet_noise_respond(&b.hs_r, &b.to_i, vector_responder_ephemeral,
				 VECTOR_RESPONDER, &second, &keys),
		0);
	before = b.hs_i;
	for (size_t i = 8; i < sizeof(second) - sizeof(second.macs); i++) {
		struct vnet_response bad = second;

		((uint8_t *)&bad)[i] ^= 1 << i % 8;
		assert_int_equal(vnet_noise_finish(&b.hs_i, &b.i, &b.to_r, &bad, &keys), -EBADMSG);
		assert_memory_equal(&b.hs_i, &before, sizeof(before));
	}
	/* Another preshared key than the responder's. */
	b.to_r.preshared[3] ^= 1;
	assert_int_equal(vnet_noise_finish(&b.hs_i, &b.i, &b.to_r, &second, &keys), -EBADMSG);
	b.to_r.preshared[3] ^= 1;
	assert_int_equal(vnet_noise_finish(&b.hs_i, &b.i, &b.to_r, &second, &keys), 0);
	/* A point of small order. */
	assert_int_equal(vnet_noise_remote(&none, &b.i, zeros, zeros), -EBADMSG);
}

static void cookies(void **state)
{
	struct vnet_cookie_jar jar;
	struct vnet_cookie_guard guard;
	struct vnet_cookie_reply reply;
	struct vnet_initiation m;
	uint64_t now = 1000 * S;

	/* Somebody else's answer to the same message. */
	assert_int_equal(vnet_cookie_jar_init(&jar, vector_responder_public), 0);
	memcpy(&m, vector_initiation, sizeof(m));
	memcpy(&reply, vector_cookie_reply, sizeof(reply));
	assert_int_equal(vnet_cookie_take(&jar, &reply, now), -EBADMSG); /* nothing was asked */
	assert_int_equal(vnet_cookie_sign(&jar, &m, sizeof(m), now), 0);
	reply.cookie[0] ^= 1;
	assert_int_equal(vnet_cookie_take(&jar, &reply, now), -EBADMSG);
	reply.cookie[0] ^= 1;
	assert_int_equal(vnet_cookie_take(&jar, &reply, now), 0);
	assert_memory_equal(jar.cookie, vector_cookie, sizeof(vector_cookie));
	assert_int_equal(vnet_cookie_sign(&jar, &m, sizeof(m), now), 0);
	assert_memory_equal(&m, vector_initiation_with_cookie, sizeof(m));

	/* Our own guard: the address counts, the secret grows old, and so does the cookie. */
	assert_int_equal(vnet_cookie_jar_init(&jar, vector_responder_public), 0);
	assert_int_equal(vnet_cookie_guard_init(&guard, vector_responder_public), 0);
	assert_int_equal(vnet_cookie_sign(&jar, &m, sizeof(m), now), 0);
	assert_int_equal(
		vnet_cookie_check(&guard, &m, sizeof(m), "A:1", 3, now), VNET_COOKIE_WITHOUT);
	assert_int_equal(
		vnet_cookie_answer(&guard, &m, sizeof(m), VECTOR_INITIATOR, "A:1", 3, now, &reply),
		0);
	assert_int_equal(reply.receiver, htole32(VECTOR_INITIATOR));
	assert_int_equal(vnet_cookie_take(&jar, &reply, now), 0);
	assert_int_equal(vnet_cookie_take(&jar, &reply, now), -EBADMSG); /* repeated */
	assert_int_equal(vnet_cookie_sign(&jar, &m, sizeof(m), now), 0);
	assert_int_equal(vnet_cookie_check(&guard, &m, sizeof(m), "A:1", 3, now), VNET_COOKIE_WITH);
	assert_int_equal(
		vnet_cookie_check(&guard, &m, sizeof(m), "A:2", 3, now), VNET_COOKIE_WITHOUT);
	now += VNET_COOKIE_SECONDS * S;
	assert_int_equal(
		vnet_cookie_check(&guard, &m, sizeof(m), "A:1", 3, now), VNET_COOKIE_WITHOUT);
	assert_int_equal(vnet_cookie_sign(&jar, &m, sizeof(m), now), 0);
	assert_memory_equal(m.macs.mac2, ((uint8_t[VNET_MAC_LEN]){0}), VNET_MAC_LEN);
}

static void replays(void **state)
{
	static struct vnet_replay r;
	const uint64_t w = VNET_REPLAY_WINDOW;

	assert_true(vnet_replay_accept(&r, 0));
	assert_false(vnet_replay_accept(&r, 0));
	assert_true(vnet_replay_accept(&r, 1));
	assert_false(vnet_replay_accept(&r, 1));
	assert_true(vnet_replay_accept(&r, 9));
	for (uint64_t i = 2; i < 9; i++)
		assert_true(vnet_replay_accept(&r, i));
	assert_false(vnet_replay_accept(&r, 5));
	assert_true(vnet_replay_accept(&r, w + 9));
	assert_false(vnet_replay_accept(&r, 9)); /* seen, just inside */
	assert_false(vnet_replay_accept(&r, 8)); /* outside */
	assert_true(vnet_replay_accept(&r, 10));
	for (uint64_t i = w + 8; i > 10; i--)
		assert_true(vnet_replay_accept(&r, i));
	for (uint64_t i = w + 9; i > 9; i--)
		assert_false(vnet_replay_accept(&r, i));
	assert_true(vnet_replay_accept(&r, w * 100)); /* far ahead: all is clear */
	assert_true(vnet_replay_accept(&r, w * 100 - w));
	assert_false(vnet_replay_accept(&r, w * 100 - w - 1));
	for (uint64_t i = w * 100 - w + 1; i < w * 100; i++)
		assert_true(vnet_replay_accept(&r, i));
	assert_true(vnet_replay_accept(&r, UINT64_MAX));
	assert_false(vnet_replay_accept(&r, UINT64_MAX));
	assert_false(vnet_replay_accept(&r, w * 100 + 1));
}

static void indices(void **state)
{
	enum { N = 1000 };
	static struct vnet_index_entry entries[N], other;
	struct vnet_index t = {0};
	uint32_t number;

	assert_null(vnet_index_find(&t, 1));
	for (int i = 0; i < N; i++)
		assert_int_equal(vnet_index_add(&t, &entries[i], i % 2, &t), 0);
	for (int i = 0; i < N; i++)
		assert_ptr_equal(vnet_index_find(&t, entries[i].number), &entries[i]);
	number = entries[7].number;
	vnet_index_move(&t, &entries[7], &other, 5, &other);
	assert_ptr_equal(vnet_index_find(&t, number), &other);
	assert_int_equal(other.kind, 5);
	vnet_index_remove(&t, &entries[7]); /* is in no table any more */
	for (int i = 0; i < N; i++) {
		number = entries[i].number;
		vnet_index_remove(&t, &entries[i]);
		if (i != 7)
			assert_null(vnet_index_find(&t, number));
	}
	assert_int_equal(t.n, 1);
	vnet_index_remove(&t, &other);
	vnet_index_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors),
		cmocka_unit_test(forged),
		cmocka_unit_test(cookies),
		cmocka_unit_test(replays),
		cmocka_unit_test(indices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
