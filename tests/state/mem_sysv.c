// SPDX-License-Identifier: GPL-2.0-or-later
/* System V segments as mappings: whole, read-only, cut in pieces, removed while attached. */
#include <sys/ipc.h>
#include <sys/shm.h>

#include "tests/state/maps.h"

int main(int argc, char **argv)
{
	key_t key = 0x47110000 + getpid(); /* natively, hosts are shared */
	int a = shmget(IPC_PRIVATE, 64 * PAGE, IPC_CREAT | 0600);
	int b = shmget(key, 5000, IPC_CREAT | 0600);
	uint8_t *p, *ro, *q;
	struct shmid_ds ds;

	STATE_CHECK(a >= 0 && b >= 0);
	p = shmat(a, NULL, 0);
	ro = shmat(a, NULL, SHM_RDONLY);
	q = shmat(b, NULL, 0);
	STATE_CHECK(p != (void *)-1 && ro != (void *)-1 && q != (void *)-1);
	memset(p, 1, 64 * PAGE);
	STATE_CHECK(munmap(p + 10 * PAGE, 4 * PAGE) == 0);
	STATE_CHECK(mprotect(p + 20 * PAGE, PAGE, PROT_READ) == 0);
	strcpy((char *)q, "segment");
	STATE_CHECK(shmctl(a, IPC_RMID, NULL) == 0);
	state_ready(argc, argv);
	STATE_CHECK(state_all(p, 1, 10) && state_all(p + 14 * PAGE, 1, 50));
	STATE_CHECK(!state_readable(p + 12 * PAGE));
	STATE_CHECK(strstr(state_mapping(p + 20 * PAGE), "r--s"));
	p[30 * PAGE] = 2;
	STATE_CHECK(ro[30 * PAGE] == 2 && strstr(state_mapping(ro), "r--s"));
	STATE_CHECK(!strcmp((char *)q, "segment"));
	STATE_CHECK(shmget(key, 0, 0) == b);
	STATE_CHECK(shmctl(a, IPC_STAT, &ds) == 0 && (ds.shm_perm.mode & SHM_DEST));
	STATE_CHECK(ds.shm_nattch == 3 || ds.shm_nattch == 4 || ds.shm_nattch == 5);
	STATE_CHECK(shmdt(q) == 0 && shmctl(b, IPC_RMID, NULL) == 0);
	return state_ok();
}
