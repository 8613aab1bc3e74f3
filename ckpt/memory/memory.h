/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memory - what ckpt/kinds/mm.c and its neighbours stand on: pages, mapped files, the vDSO.
 *
 * Private to ckpt.  One header for the small units of ckpt/memory:
 *
 *      mapping.c   dump: what a mapping is, as a record
 *      pages.c     dump: which pages of a mapping must be written, and writing them
 *      space.c     dump: the pages of a whole memory space
 *      fork.c      dump: copies of memory spaces, so that the session can run on
 *      aside.c     dump: copies of those that can't be forked (aside.h)
 *      reserve.c   dump: room for these, and for the next (reserve.h)
 *      stash.c     dump: shared memory, copied while all stand still (stash.h)
 *      before.c    dump: mappings of those who sleep, from before they are stopped
 *      ahead.c     dump: what is copied while the session runs (ahead.h)
 *      arrived.c   restore: memory that came ahead of its session (arrived.h)
 *      seen.c      dump: the files of these
 *      outline.c   dump: the mappings of a large memory space, by such a copy
 *      track.c     dump: which pages have been written to since they were copied (track.h)
 *      map.c       restore: the mappings of a record in a blank task
 *      place.c     restore: the vDSO in it
 *      fill.c      restore: pages of an image into a task
 *      fillers.c   restore: the same by several threads (fillers.h)
 *      mapped.c    restore: long runs are mapped from the image at first
 *      kept.c      restore: what was copied ahead is mapped, or copied
 *      convert.c   afterwards: what is mapped becomes memory of the session's own
 *      file.c      mapped files: described at dump, recognised at restore
 *      vdso.c      the vDSO of the image against the one of this host
 *      vdso_clock.c  one that carries on a session's clocks
 *      layout.c    where an image leaves room
 *
 * and for the two kinds that MM leans on (kinds/sharedmem.c).
 */
#ifndef CKPT_MEMORY_MEMORY_H
#define CKPT_MEMORY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/kinds.h"

struct buf;
struct ckpt_aside;
struct ckpt_build;
struct ckpt_dump;
struct ckpt_file_mark;
struct ckpt_proc;
struct ckpt_world;
struct err;
struct proc_maps;
struct proc_status;
struct proc_vma;
struct proto_writer;
struct remote;
struct stat;

/* Addresses from here on are the kernel's, or [vsyscall]. */
#define CKPT_TASK_SIZE 0x7ffffffff000UL

/* ---- layout.c ------------------------------------------------------------------------------ */

/*
 * Finds @size bytes, page aligned, which no memory space among the image's MM records uses and
 * which lie apart from all of them: room for the executor's pages (struct ckpt_build's area).
 * CKPT_LAYOUT_BELOW bytes below it are free as well: this host's vDSO goes there if the image's
 * differs.  Only b->records has to be there.
 */
#define CKPT_LAYOUT_BELOW (128 * 1024UL)
/* The most that a stack is made larger than it was, so that it may grow where it lies. */
#define CKPT_STACK_ROOM (64UL << 20)
/*
 * While a session is surveyed: will there be such a place?  Where addresses are few there may be
 * none: ERR_UNFREEZABLE.
 */
int ckpt_layout_check(struct ckpt_dump *d, struct err *e);
/* First: what they use, and whether there is a 32-bit program among them (b->i386). */
int ckpt_layout_read(struct ckpt_build *b, struct buf *ranges, struct err *e);
int ckpt_layout_free(const struct ckpt_build *b, struct buf *ranges, uint64_t size, uint64_t *ret,
	struct err *e);

/* ---- mapping.c ----------------------------------------------------------------------------- */

struct Pb__Mapping; /* proto/memory.pb-c.h */
struct Pb__MappedFile;
struct Pb__Mm;

/*
 * Says what mapping @v of p->maps is; strings are borrowed from @v, and `object` of MAPPING_PATH is
 * left to the caller.  It is found out once.  1: nothing to record.  ERR_UNFREEZABLE for what is
 * not supported.
 */
int ckpt_mapping_describe(struct ckpt_dump *d, struct ckpt_proc *p, const struct proc_vma *v,
	struct Pb__Mapping *ret, struct err *e);
/* Has the executor borrowed it? */
bool ckpt_mapping_is_ours(const struct ckpt_proc *p, const struct proc_vma *v);
/* The name given by PR_SET_VMA_ANON_NAME in @path ("[anon:NAME]"): its length, 0 for none. */
size_t ckpt_mapping_name(const char *path, const char **ret);

/* ---- map.c, place.c ------------------------------------------------------------------------- */

struct ckpt_build_proc;

/* Makes the mappings of @m in the blank @p. */
int ckpt_map(
	struct ckpt_build *b, struct ckpt_build_proc *p, const struct Pb__Mm *m, struct err *e);
/* What must come last: keys, locked and sealed mappings, and a program without a path. */
bool ckpt_map_has_finish(const struct ckpt_build *b, const struct Pb__Mm *m);
int ckpt_map_finish(
	struct ckpt_build *b, struct ckpt_build_proc *p, const struct Pb__Mm *m, struct err *e);
/* The vDSO; before any other mapping is made. */
int ckpt_place_vdso(
	struct ckpt_build *b, struct ckpt_build_proc *p, const struct Pb__Mm *m, struct err *e);

/* ---- keys.c --------------------------------------------------------------------------------- */

/* Have this CPU and kernel memory protection keys (pkeys(7))? */
bool ckpt_keys_here(void);
/*
 * Adds calls to the batch of @r that tell which keys its memory space has given out; returns the
 * first's index, or -ENOSPC.  After the batch ckpt_keys_asked has those keys: bit K for key K.
 */
int ckpt_keys_ask(struct remote *r);
uint32_t ckpt_keys_asked(const struct remote *r, int first);
/* Are the keys of a record such as there may be?  Of all below it must have been asked. */
bool ckpt_keys_sane(const struct Pb__Mm *mm);
/* ERR_HOST when the record has keys and this CPU has none. */
int ckpt_keys_check(const struct Pb__Mm *mm, struct err *e);
/* Is there anything to be done about keys? */
bool ckpt_keys_used(const struct Pb__Mm *mm);
/* The PROT_* that a mapping has until ckpt_keys_restore. */
uint32_t ckpt_keys_prot(const struct Pb__Mm *mm, const struct Pb__Mapping *m);
/*
 * Takes the keys in the memory space of @remote, which has given out none, and gives mappings
 * theirs.  That thread may use memory of all keys then, until its registers are restored.
 * ERR_FAILED when they can't be had.
 */
int ckpt_keys_restore(struct remote *remote, const struct Pb__Mm *mm, struct err *e);

/* ---- pages.c ------------------------------------------------------------------------------- */

struct ckpt_run {
	uint64_t start, end;
};
/* Appends one to @b, or lengthens the last one, if it begins where that ends.  NULL is fine. */
void ckpt_run_put(struct buf *b, uint64_t start, uint64_t end);

/* Words of /proc/PID/pagemap: Documentation/admin-guide/mm/pagemap.rst. */
#define PM_PRESENT    (1ULL << 63)
#define PM_SWAP	      (1ULL << 62)
#define PM_FILE	      (1ULL << 61)
#define PM_GUARD      (1ULL << 58)
#define PM_SOFT_DIRTY (1ULL << 55)
#ifndef PAGE_IS_GUARD
#define PAGE_IS_GUARD (1 << 8) /* linux/fs.h, 6.16 */
#endif

/* The pages of one memory space. */
struct ckpt_pages {
	pid_t pid;
	int pagemap; /* /proc/PID/pagemap */
	int mem;     /* /proc/PID/mem */
	int method;  /* what the kernel offers; found out at the first question */
	bool no_files; /* no page asked about is a file's: the kernel need not look at each */
	bool forked;   /* pages are shared with whoever was forked: they are read without being made its own */
	const struct ckpt_aside *aside; /* pages are read from here, if it is not NULL */
	struct ckpt_aside *into;	/* and put aside there, not written */
	uint8_t *scratch;
	uint64_t written; /* pages */
	bool gone;	  /* its memory was when pages were read: it had been killed */
};

#define CKPT_PAGES_INIT ((struct ckpt_pages){.pagemap = -1, .mem = -1})

/* @proc_fd: a /proc that numbers processes as @pid does.  What was never opened may be closed. */
int ckpt_pages_open(struct ckpt_pages *ret, int proc_fd, pid_t pid, struct err *e);
void ckpt_pages_close(struct ckpt_pages *p);
#define _cleanup_pages_ __attribute__((cleanup(ckpt_pages_close)))

/*
 * Calls @each with the words of the page map for [@start, @end), @n pages from @at.  0 or negative
 * errno.
 */
int ckpt_pages_each_word(int pagemap, uint64_t start, uint64_t end,
	void (*each)(void *ctx, uint64_t at, const uint64_t *words, size_t n), void *ctx);

/* True where holes cost nothing to ckpt_pages_find. */
bool ckpt_pages_scans(struct ckpt_pages *p);

/*
 * Appends to @runs the pages (struct ckpt_run) of a private mapping which are not as its source
 * has them: touched anonymous pages, copies of file pages; in memory or swapped out.  Pages
 * known to be zero are left out.  Guard pages are appended to @guards.  Either may be NULL.
 */
int ckpt_pages_find(struct ckpt_pages *p, uint64_t start, uint64_t end, struct buf *runs,
	struct buf *guards, struct err *e);

/* The guard pages alone: where the kernel scans pages, in a part of the time. */
int ckpt_pages_find_guards(
	struct ckpt_pages *p, uint64_t start, uint64_t end, struct buf *guards, struct err *e);

/*
 * Room for PROTO_MAX_DATA bytes in @scratch, if there is none yet; it goes with the close.
 * -ENOMEM.
 */
int ckpt_pages_room(struct ckpt_pages *p, struct err *e);
/*
 * Reads all of it; what can't be read becomes zero.  Of a task that has been killed that is all:
 * @gone then.
 */
void ckpt_pages_read(struct ckpt_pages *p, uint64_t addr, uint8_t *to, size_t len);
bool ckpt_page_is_zero(const uint8_t *page);
/* Shorter stretches of pages that need not be written, between others, are written. */
#define CKPT_MIN_GAP (4 * PAGE_SIZE)
/*
 * The first stretch of @data, whole pages, worth writing at or after *pos: returns its length (0: none)
 * and leaves *pos at its start.
 */
size_t ckpt_pages_next(const uint8_t *data, size_t len, size_t *pos);
/*
 * Writes the pages of [start, end) as DATA of (@kind, @subject), at offset address + @shift; those
 * that are zero only with @zeros (a zero page in the copy of a file is not nothing).  Unreadable
 * pages count as zero.
 */
int ckpt_pages_write(struct ckpt_pages *p, struct proto_writer *out, enum proto_kind kind,
	uint64_t subject, struct ckpt_run run, uint64_t shift, bool zeros, struct err *e);

/* ---- compare.c ----------------------------------------------------------------------------- */

struct ckpt_base;

/*
 * As ckpt_pages_write for kind MM, of process @vpid: pages that @base has are not written, but
 * where they are is appended to @refs (bytes as a DATA frame of kind REFS has them).
 */
int ckpt_pages_compare(struct ckpt_pages *p, struct proto_writer *out, struct ckpt_base *base,
	pid_t vpid, struct ckpt_run run, bool zeros, struct buf *refs, struct err *e);

/* ---- space.c ------------------------------------------------------------------------------- */

/* Areas that a fork takes along, and those that madvise has excepted (DONTFORK, WIPEONFORK). */
enum ckpt_space_part { CKPT_SPACE_ALL, CKPT_SPACE_FORKED, CKPT_SPACE_UNFORKED };

/*
 * Finds the anonymous pages of @p, as p->memory_pages, and its guard pages, as p->memory_guards; or
 * only those, if it will be copied (p->memory_waits).  Of several processes in several threads, but
 * where memory has been copied ahead.
 */
int ckpt_space_scan(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e);
/*
 * When the session runs: finds those that waited, in the copies of memory.  -ESRCH: a copy was
 * killed.
 */
int ckpt_space_scan_copies(struct ckpt_dump *d, struct err *e);
/* Puts all private pages of the stopped @p aside.  Of several processes in several threads. */
int ckpt_space_take(
	struct ckpt_dump *d, struct ckpt_proc *p, struct ckpt_aside *aside, struct err *e);
/*
 * Writes the private pages of @p found by the scan, as they are in the task @pid (itself or a copy)
 * or as they were put aside, to d->out.
 */
int ckpt_space_write(struct ckpt_dump *d, struct ckpt_proc *p, pid_t pid, enum ckpt_space_part part,
	struct err *e);

/* ---- fork.c --------------------------------------------------------------------------------- */

/*
 * For a snapshot, while all are stopped: makes a copy-on-write copy of every memory space that is
 * worth it, p->memory_copy.  What can't be copied has none then.
 */
void ckpt_fork_make(struct ckpt_dump *d);
/*
 * When that is done and all records are written: writes what a copy can't hold to d->out, and puts
 * whole spaces aside that are small or can't be copied, or writes them, if there is no room.  The
 * dump_data of kind MM may then be called when the session runs again.  On failure no copies are
 * left.
 */
int ckpt_fork_rest(struct ckpt_dump *d, struct err *e);
/* Is @p, with its own memory, worth it?  As far as p->maps tells now. */
bool ckpt_fork_pays(const struct ckpt_proc *p);
/* Is it in a pid namespace of its own?  Then it does not. */
bool ckpt_has_another_pid_1(const struct ckpt_dump *d, const struct proc_status *s);
/* One of them, p->memory_copy. */
int ckpt_fork_space(struct ckpt_proc *p, struct err *e);
/* Ends its copy, if it has one. */
void ckpt_fork_drop(struct ckpt_proc *p);
/* Ends the copies; whatever happened.  Before the dump is freed. */
void ckpt_fork_end(struct ckpt_dump *d);

/* ---- before.c ------------------------------------------------------------------------------- */

struct ckpt_before;
/*
 * What smaps says of the processes of a session that runs; NULL: nothing.  @may_open: as of
 * ckpt_seen_look.
 */
struct ckpt_before *ckpt_before_read(const struct ckpt_dump *d, bool may_open);
void ckpt_before_free(struct ckpt_before *b);
/* How many bytes of private memory are not forked but put aside; NULL is fine. */
uint64_t ckpt_before_unforked(const struct ckpt_before *b);
/* About how many bytes of shared memory there are; NULL is fine. */
uint64_t ckpt_before_shared(const struct ckpt_before *b);
/* About how many bytes all but private and shared memory takes in an image; NULL is fine. */
uint64_t ckpt_before_records(const struct ckpt_before *b);
/* About how many bytes of the heap are taken to describe their mappings; NULL is fine. */
size_t ckpt_before_heap(const struct ckpt_before *b);
/* When it stands still, before anything is taken.  NULL is fine. */
void ckpt_before_look_again(struct ckpt_before *b);
/*
 * Of a stopped process that has slept since: p->maps, with detail, and true; once.  Several at the
 * same time.
 */
bool ckpt_before_take(struct ckpt_proc *p);
/*
 * Is what was taken so in @pid, the process or a forked copy?  -EAGAIN.  The second: of all copies.
 */
int ckpt_before_check(struct ckpt_proc *p, pid_t pid, struct err *e);
int ckpt_before_check_copies(struct ckpt_dump *d, struct err *e);

/* What is known of a file that is mapped, and still so: as ckpt_seen_mark.  @b may be NULL. */
bool ckpt_before_mark(const struct ckpt_before *b, const char *path, uint64_t ino,
	struct ckpt_file_mark *ret);

/* ---- seen.c --------------------------------------------------------------------------------- */

struct ckpt_seen;
/*
 * The files of mappings, @n times some; @may_open: or what they are recognised by is not looked
 * for.  NULL: no memory.
 */
struct ckpt_seen *ckpt_seen_look(
	const struct ckpt_world *w, bool may_open, struct proc_maps *const *maps, size_t n);
void ckpt_seen_free(struct ckpt_seen *s);
/* When all stand still: which are what they were.  Before that none is. */
void ckpt_seen_look_again(struct ckpt_seen *s);
/* Do the paths of all mappings, which were among those, still lead to their files? */
bool ckpt_seen_all(const struct ckpt_seen *s, const struct proc_maps *m);
/*
 * What such a file is recognised by, and true, if that is known and its size and times are what
 * they were.
 */
bool ckpt_seen_mark(const struct ckpt_seen *s, const char *path, uint64_t ino,
	struct ckpt_file_mark *ret);

/* ---- outline.c ------------------------------------------------------------------------------ */

/*
 * Is @p one that is forked anyway, and so large that its smaps would take long, on a kernel that
 * scans pages?
 */
bool ckpt_outline_pays(const struct ckpt_proc *p);
/* Does the kernel scan pages (PAGEMAP_SCAN, 6.7) of @p? */
bool ckpt_pages_scanned(const struct ckpt_proc *p);
/*
 * Makes a copy of it (ckpt_fork_space), and fills in what p->maps, without detail, lacks; of
 * mappings with many pages anonymous_kb is no more than a limit.  On failure there is no copy, and
 * p->maps is not to be used.
 */
int ckpt_outline_take(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e);

/* ---- fill.c -------------------------------------------------------------------------------- */

/* Puts @len bytes into private memory of a task; @writable: its mapping has PROT_WRITE.
 * *mem caches /proc/PID/mem (-1 at first) below @proc_fd, where the task is @vpid. */
int ckpt_fill(pid_t pid, int proc_fd, pid_t vpid, int *mem, uint64_t addr, const void *data,
	size_t len, bool writable, struct err *e);
struct ckpt_filling; /* fillers.h */
/* What of @w any thread can write; the rest is in @w then.  True: nothing is left. */
bool ckpt_fill_part(struct ckpt_filling *w);

/* ---- mapped.c ------------------------------------------------------------------------------ */

struct proto_frame;

/* May memory of @p, or this mapping of it, come from the image at first? */
bool ckpt_mapped_process(
	struct ckpt_build *b, const struct ckpt_build_proc *p, const struct Pb__Mm *m);
bool ckpt_mapped_fits(const struct Pb__Mapping *m);
/* Is what is mapped the file of what came ahead, and not the image? */
bool ckpt_mapped_is_arrived(const struct ckpt_build *b);
/* Is all of it where calls are held?  And may it be mapped? */
bool ckpt_mapped_watches(const struct ckpt_build *b, uint64_t start, uint64_t end);
bool ckpt_mapped_may(const struct ckpt_build *b, pid_t vpid, uint64_t addr, uint64_t len);
/* Is @f, whose data was left where it is, one of those that are to be mapped? */
bool ckpt_mapped_wants(const struct ckpt_build *b, const struct proto_frame *f);

/* A private mapping that is being filled. */
struct ckpt_private {
	uint64_t start, end;
	uint32_t prot;
	bool fits, noreserve; /* it may be mapped from the image at first */
	bool begun;	      /* and a part of it is */
};
/* Notes that a part of @v is to be mapped from @offset of the image. */
int ckpt_mapped_add(struct ckpt_build *b, struct ckpt_build_proc *p, struct ckpt_private *v,
	uint64_t addr, uint64_t len, uint64_t offset, struct err *e);
/* Of the pieces from number @first on, @n of one process: that which ends behind @addr, or @n. */
size_t ckpt_mapped_find(const struct ckpt_build *b, size_t first, size_t n, uint64_t addr);
/* Maps what was noted. */
int ckpt_mapped_flush(struct ckpt_build *b, struct err *e);

/* ---- kept.c -------------------------------------------------------------------------------- */

/*
 * @runs, in order, lie in @v, and were copied ahead of @p, whose memory was @space then: noted to
 * be mapped, or copied.  *mem: as of ckpt_fill.  What is mapped has zeros in the arrived file where
 * no run is, so it is called once for each mapping of each process, and a space is one process's.
 * ERR_FAILED: the file can't be written to, or the task's memory can't.  On failure a part may be
 * there.
 */
int ckpt_kept_put(struct ckpt_build *b, struct ckpt_build_proc *p, uint64_t space,
	struct ckpt_private *v, const struct ckpt_run *runs, size_t n, int *mem, struct err *e);

/* ---- file.c -------------------------------------------------------------------------------- */

/* What a mapped file is recognised by. */
struct ckpt_file_mark {
	uint64_t size;
	int64_t mtime_sec;
	uint32_t mtime_nsec;
	uint32_t build_id_len;
	uint8_t build_id[32];
	uint64_t sample;
};

/* That of the regular file @fd. */
void ckpt_file_mark(int fd, const struct stat *st, struct ckpt_file_mark *ret);
/*
 * Describes the file @path of the session, which a mapping says is inode @ino (0: not known).
 * Refuses what is no regular file (ERR_UNFREEZABLE).  Asks each file once per dump.
 */
int ckpt_file_describe(struct ckpt_dump *d, const char *path, uint64_t ino,
	struct ckpt_file_mark *ret, struct err *e);
/*
 * 0 when the file at the path of @f is the one described; @grown_is_fine: one that the session
 * itself may write, of which only the size is compared (at least so large).  ERR_HOST otherwise.
 */
int ckpt_file_recognise(struct ckpt_build *b, const struct Pb__MappedFile *f, bool grown_is_fine,
	struct err *e);

/* ---- vdso.c -------------------------------------------------------------------------------- */

/*
 * Makes the code in @old (contents of an image's [vdso], to be at @old_addr) jump to the new one:
 * each symbol to its namesake in @host, which will be at @host_addr, or to a stub that makes the
 * system call.
 */
int ckpt_vdso_redirect(uint8_t *old, size_t old_len, uint64_t old_addr, const uint8_t *host,
	size_t host_len, uint64_t host_addr, struct err *e);

/* ---- vdso_clock.c --------------------------------------------------------------------------- */

/* Is the vDSO @image what ckpt_vdso_continue has made of @host, whatever it adds? */
bool ckpt_vdso_likens(const uint8_t *image, const uint8_t *host, size_t len);
/* If ckpt_vdso_continue has made it what it is, it adds nothing any more. */
void ckpt_vdso_stop(uint8_t *vdso, size_t len);

/* ---- kinds/mm.c ---------------------------------------------------------------------------- */

struct ckpt_record;
/* Unpacks an MM record, its mappings checked: sorted, page aligned, below CKPT_TASK_SIZE. */
int ckpt_mm_unpack(const struct ckpt_record *r, struct Pb__Mm **ret, struct err *e);
/* Puts pages, which must lie in one private mapping, into the memory of process @vpid. */
int ckpt_mm_put(struct ckpt_build *b, pid_t vpid, uint64_t addr, const void *data, size_t len,
	struct err *e);
/*
 * Fills what was copied ahead and is still so, if it is a record of memory; or notes that it is to
 * be mapped.
 */
int ckpt_mm_fill_kept(struct ckpt_build *b, struct ckpt_record *r, struct err *e);
/* A frame whose data was left in the image.  1: it is mapped, 0: it must be copied. */
int ckpt_mm_left(struct ckpt_build *b, struct ckpt_record *r, const struct proto_frame *f,
	struct err *e);

/* ---- kinds/sharedmem.c ---------------------------------------------------------------------- */

/* The object which @v is a window of (0: none, it is private and nobody else has it). */
int ckpt_shared_find(
	struct ckpt_dump *d, const struct proc_vma *v, uint64_t *ret_id, struct err *e);
/*
 * The builder's descriptor of object @id.  Through one that only reads no mapping can be written,
 * now or later, and seals against writing may follow (F_ADD_SEALS of fcntl(2)).  Borrowed.
 */
int ckpt_shared_fd(struct ckpt_build *b, uint64_t id, bool writes, int *ret_fd, struct err *e);

#endif
