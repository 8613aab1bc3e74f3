// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/web/tls.h"

#include <fcntl.h>
/* One of libcrypto's types has the name of one of our error classes. */
#define ERR_STATE OPENSSL_ERR_STATE
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#undef ERR_STATE
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/base.h"

#define YEARS	    10
#define SERIAL_BITS 127

static int failed(struct err *e, const char *what)
{
	return err_set(e, ERR_FAILED, -EIO, "can't %s", what);
}

/* Browsers want a name; which one does not matter, for nobody has signed this. */
static bool fill(X509 *x, EVP_PKEY *key)
{
	X509_NAME *name = X509_get_subject_name(x);
	BIGNUM *serial = BN_new();
	bool ok = serial && BN_rand(serial, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) &&
		  BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(x));

	BN_free(serial);
	return ok && X509_set_version(x, 2) && X509_gmtime_adj(X509_getm_notBefore(x), 0) &&
	       X509_gmtime_adj(X509_getm_notAfter(x), 60L * 60 * 24 * 365 * YEARS) &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
		       (const unsigned char *)"podrun display", -1, -1, 0) &&
	       X509_set_issuer_name(x, name) && X509_set_pubkey(x, key) &&
	       X509_sign(x, key, EVP_sha256()) > 0;
}

/* Writes what @b holds, beside @path first. */
static int store(BIO *b, const char *path, struct err *e)
{
	char *data;
	long n = BIO_get_mem_data(b, &data);
	int r = n > 0 ? io_replace_file(AT_FDCWD, path, data, (size_t)n, 0600) : -EIO;

	return r < 0 ? err_errno(e, r, "%s", path) : 0;
}

static int make(const struct display_tls *t, struct err *e)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	BIO *of_key = BIO_new(BIO_s_mem()), *of_cert = BIO_new(BIO_s_mem());
	int r;

	if (!key || !x || !of_key || !of_cert || !fill(x, key) ||
		!PEM_write_bio_PrivateKey(of_key, key, NULL, NULL, 0, NULL, NULL) ||
		!PEM_write_bio_X509(of_cert, x))
		r = failed(e, "make a key");
	else
		r = store(of_key, t->key, e);
	/* The certificate last: while there is none, both are made anew. */
	if (r == 0)
		r = store(of_cert, t->certificate, e);
	BIO_free(of_key);
	BIO_free(of_cert);
	X509_free(x);
	EVP_PKEY_free(key);
	return r;
}

/* One of several that want the first one makes it, and the others have that. */
static int make_first(const struct display_tls *t, const char *keys, struct err *e)
{
	_cleanup_close_ int dir = open(keys, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -1 : flock(dir, LOCK_EX);

	while (r < 0 && dir >= 0 && errno == EINTR)
		r = flock(dir, LOCK_EX);
	if (r < 0)
		return err_errno(e, -errno, "%s", keys);
	return access(t->certificate, F_OK) == 0 ? 0 : make(t, e);
}

static int fingerprint(struct display_tls *t, struct err *e)
{
	_cleanup_fclose_ FILE *f = fopen(t->certificate, "re");
	X509 *x = f ? PEM_read_X509(f, NULL, NULL, NULL) : NULL;
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	bool ok = x && X509_digest(x, EVP_sha256(), digest, &n) && n == 32;

	X509_free(x);
	if (!ok) {
		err_set(e, ERR_FAILED, -EBADMSG, "%s is no certificate", t->certificate);
		return err_hint(e, "remove it, and another is made");
	}
	for (unsigned i = 0; i < n; i++)
		snprintf(t->fingerprint + 3 * i, 4, "%02X%s", digest[i], i + 1 < n ? ":" : "");
	return 0;
}

int display_tls_init(struct display_tls *t, const char *keys, struct err *e)
{
	*t = (struct display_tls){0};
	if (asprintf(&t->certificate, "%s/display.crt", keys) < 0)
		t->certificate = NULL;
	if (asprintf(&t->key, "%s/display.key", keys) < 0)
		t->key = NULL;
	if (!t->certificate || !t->key)
		return err_errno(e, -ENOMEM, "memory");
	if (access(t->certificate, F_OK) < 0 && make_first(t, keys, e) < 0)
		return e->error;
	return fingerprint(t, e);
}

void display_tls_fini(struct display_tls *t)
{
	free(t->certificate);
	free(t->key);
	*t = (struct display_tls){0};
}
