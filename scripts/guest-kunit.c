// SPDX-License-Identifier: GPL-2.0-only
/*
 * kunit_suite SUITE: runs a KUnit suite of the kernel that's built in, through debugfs, and
 * prints its results. As KTAP in KTAP would be read as results of the plan, each line of it is a
 * comment here.
 *
 * Exit: 0 the suite passed, 1 it did not, 4 all of it was skipped, or the kernel does not have it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/mount.h>

#define KUNIT	"/sys/kernel/debug/kunit"

#define PASS	0
#define FAIL	1
#define SKIP	4

static char results[1 << 18];

/* The whole of a file that fits in the buffer; -1 if there is no such file. */
static int read_all(const char *path)
{
	size_t done = 0;
	ssize_t n;
	int fd;

	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -1;
	while ((n = read(fd, results + done, sizeof(results) - 1 - done)) > 0)
		done += n;
	close(fd);
	results[done] = '\0';
	return n < 0 || done == sizeof(results) - 1 ? -1 : 0;
}

/* Prints the results, and says what their last line says: that of the suite. */
static int report(const char *suite)
{
	char *line = results, *end;
	int skipped = 0, passed = 0, verdict = FAIL;

	for (; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			break;
		*end = '\0';
		printf("# %s\n", line);
		/* A case: "    ok 1 name"; a parameter of a case is further right. */
		if (!strncmp(line, "    ok ", 7)) {
			if (strstr(line, " # SKIP"))
				skipped++;
			else
				passed++;
		}
		if (!strncmp(line, "ok ", 3) && strstr(line, suite))
			verdict = PASS;
	}
	if (verdict == PASS && !passed)
		verdict = SKIP;
	else if (verdict == PASS && skipped)
		printf("# %d cases were skipped\n", skipped);
	return verdict;
}

int main(int argc, char **argv)
{
	char path[256];
	int fd;

	if (argc != 2) {
		printf("usage: kunit_suite SUITE\n");
		return FAIL;
	}
	/* It may be mounted. */
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);

	snprintf(path, sizeof(path), KUNIT "/%s/run", argv[1]);
	fd = open(path, O_WRONLY);
	if (fd < 0) {
		printf("# %s: errno %d\n", path, errno);
		return SKIP;
	}
	if (write(fd, "1", 1) != 1) {
		printf("# %s: write: errno %d\n", path, errno);
		return FAIL;
	}
	close(fd);

	snprintf(path, sizeof(path), KUNIT "/%s/results", argv[1]);
	if (read_all(path)) {
		printf("# %s: errno %d\n", path, errno);
		return FAIL;
	}
	return report(argv[1]);
}
