// SPDX-License-Identifier: GPL-2.0-only
/*
 * The only program of our own in the guests. Built with the kernel's nolibc, so one
 * compiler makes it for every architecture, and no foreign C library is needed.
 *
 * As /init: mounts what the tests expect, runs the command that run-guest put into
 * /guest/command, copies its output to the virtio port "guest.output", and says on the
 * port "guest.control" how far it came: "boot" as soon as userspace runs, "exit N" when the
 * command is done. A guest that dies says nothing, which is how run-guest can tell.
 *
 * As timeout: the part of timeout(1) that run_kselftest.sh uses. busybox's has no
 * --foreground and does not return 124.
 */
#define _GNU_SOURCE
#include "nolibc.h"
#include <linux/reboot.h>

#define PORTS		"/sys/class/virtio-ports"
#define COMMAND		"/guest/command"
#define INTERACTIVE	"/guest/interactive"

static char *const environment[] = {
	"PATH=/bin:/sbin:/usr/bin:/usr/sbin",
	"HOME=/",
	"TERM=linux",
	NULL
};

static int write_all(int fd, const char *buf, size_t len)
{
	while (len) {
		ssize_t n = write(fd, buf, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		buf += n;
		len -= n;
	}
	return 0;
}

static int exists(const char *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return 0;
	close(fd);
	return 1;
}

static void sleep_ms(int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

/* A shell's way to put what waitpid() tells into one number. */
static int exit_code(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Readable, for poll(), once the process has ended. */
static int open_pid(pid_t pid)
{
	return syscall(__NR_pidfd_open, pid, 0);
}

/* The first line of a small file, without its newline. */
static int read_line(const char *path, char *buf, size_t size)
{
	ssize_t n;
	int fd;

	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return -1;
	buf[n] = '\0';
	if (strchr(buf, '\n'))
		*strchr(buf, '\n') = '\0';
	return 0;
}

/*
 * The ports show up some time after their device, and their numbers depend on the other
 * virtio devices: only the name is certain.
 */
static int open_port(const char *wanted)
{
	char path[NAME_MAX + 64], name[64];
	struct dirent entry, *found;
	int fd = -1, tries;
	DIR *dir;

	for (tries = 0; tries < 100 && fd < 0; tries++) {
		if (tries)
			sleep_ms(100);
		dir = opendir(PORTS);
		if (!dir)
			continue;
		while (fd < 0 && !readdir_r(dir, &entry, &found) && found) {
			snprintf(path, sizeof(path), PORTS "/%s/name", entry.d_name);
			if (read_line(path, name, sizeof(name)) || strcmp(name, wanted))
				continue;
			snprintf(path, sizeof(path), "/dev/%s", entry.d_name);
			fd = open(path, O_RDWR);
		}
		closedir(dir);
	}
	if (fd < 0)
		printf("guest-init: no port %s\n", wanted);
	return fd;
}

static void run_quietly(char *const argv[])
{
	pid_t pid = fork();
	int fd;

	if (!pid) {
		fd = open("/dev/null", O_RDWR);
		dup2(fd, 1);
		dup2(fd, 2);
		execve(argv[0], argv, environment);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void prepare(void)
{
	static char *const applets[] = { "/bin/busybox", "--install", "-s", NULL };

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mkdir("/tmp", 01777);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	/* The kernel may have done this one already. */
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mkdir("/dev/shm", 01777);
	mkdir("/dev/pts", 0755);
	mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL);
	mount("devpts", "/dev/pts", "devpts", 0, NULL);
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
	symlink("/proc/self/fd", "/dev/fd");
	symlink("/proc/self/fd/0", "/dev/stdin");
	symlink("/proc/self/fd/1", "/dev/stdout");
	symlink("/proc/self/fd/2", "/dev/stderr");
	run_quietly(applets);
}

/* Never returns. */
static void execute_command(void)
{
	char *shell[] = { "/bin/sh", COMMAND, NULL };

	execve(shell[0], shell, environment);
	printf("guest-init: cannot run the command: errno %d\n", errno);
	_exit(127);
}

/*
 * The command gets a pipe, not the port: a port can be opened once only, and
 * run_kselftest.sh opens /dev/stdout again. Returns the command's exit code.
 */
static int run_command(int output)
{
	struct pollfd polled[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int fds[2], status = 0, done = 0, any;
	char buf[4096];
	pid_t pid, gone;
	ssize_t n;

	if (pipe(fds))
		return 127;
	pid = fork();
	if (pid < 0)
		return 127;
	if (!pid) {
		int null = open("/dev/null", O_RDONLY);

		setsid();
		dup2(null, 0);
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		close(null);
		close(fds[0]);
		close(fds[1]);
		close(output);
		execute_command();
	}
	close(fds[1]);
	polled[0].fd = open_pid(pid);
	polled[1].fd = fds[0];
	/* What the command left running may keep the pipe open for ever: no end of file. */
	while (!done) {
		poll(polled, 2, 1000);
		/* As process 1 we also inherit every orphan. */
		while ((gone = waitpid(-1, &any, WNOHANG)) > 0) {
			if (gone != pid)
				continue;
			status = any;
			done = 1;
		}
		while (poll(&polled[1], 1, 0) > 0) {
			n = read(polled[1].fd, buf, sizeof(buf));
			if (n <= 0) {
				/* poll() ignores a negative one. */
				polled[1].fd = -1;
				break;
			}
			write_all(output, buf, n);
		}
	}
	return exit_code(status);
}

/* A shell with a real terminal: hvc0, which QEMU ties to its own stdin and stdout. */
static int run_shell(void)
{
	char *shell[] = { "/bin/sh", COMMAND, NULL };
	int fd, status = 0, tries;
	pid_t pid, gone;

	for (tries = 0; tries < 100 && !exists("/dev/hvc0"); tries++)
		sleep_ms(100);
	pid = fork();
	if (pid < 0)
		return 127;
	if (!pid) {
		setsid();
		fd = open("/dev/hvc0", O_RDWR);
		ioctl(fd, TIOCSCTTY, 1);
		dup2(fd, 0);
		dup2(fd, 1);
		dup2(fd, 2);
		execve(shell[0], shell, environment);
		_exit(127);
	}
	do {
		gone = waitpid(-1, &status, 0);
	} while (gone != pid && (gone > 0 || errno == EINTR));
	return exit_code(status);
}

static int init_main(void)
{
	char line[32];
	int control, output, code;

	prepare();
	control = open_port("guest.control");
	if (control >= 0)
		write_all(control, "boot\n", 5);
	if (exists(INTERACTIVE)) {
		code = run_shell();
	} else {
		output = open_port("guest.output");
		/* Without the port nobody would see a result: do not pretend to have one. */
		code = output < 0 ? 127 : run_command(output);
	}
	snprintf(line, sizeof(line), "exit %d\n", code);
	if (control >= 0)
		write_all(control, line, strlen(line));
	reboot(LINUX_REBOOT_CMD_POWER_OFF);
	/* A guest that cannot power off is ended by run-guest, which has the exit code. */
	for (;;)
		sleep_ms(1000);
}

/* timeout [--foreground] SECONDS COMMAND [ARGS] */
static int timeout_main(int argc, char **argv, char **envp)
{
	int foreground = 0, status, timed_out = 0, sig = SIGTERM;
	struct pollfd polled = { .events = POLLIN };
	long seconds;
	pid_t pid;

	argv++, argc--;
	if (argc && !strcmp(argv[0], "--foreground")) {
		foreground = 1;
		argv++, argc--;
	}
	seconds = argc ? atol(argv[0]) : 0;
	if (argc < 2 || seconds <= 0 || seconds > 100000) {
		fprintf(stderr, "usage: timeout [--foreground] SECONDS COMMAND [ARGS]\n");
		return 125;
	}
	pid = fork();
	if (pid < 0)
		return 125;
	if (!pid) {
		/* Its own group, so that children of the test are killed with it. */
		if (!foreground)
			setpgid(0, 0);
		execve(argv[1], argv + 1, envp);
		fprintf(stderr, "timeout: cannot run %s: errno %d\n", argv[1], errno);
		_exit(127);
	}
	/* run_kselftest.sh puts one in another, same limit: the inner one shall act first. */
	if (foreground)
		seconds += 10;
	polled.fd = open_pid(pid);
	while (poll(&polled, 1, (timed_out ? 3 : seconds) * 1000) == 0) {
		kill(foreground ? pid : -pid, sig);
		timed_out = 1;
		sig = SIGKILL;
	}
	if (timed_out && !foreground)
		kill(-pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid)
		return 125;
	return timed_out ? 124 : exit_code(status);
}

int main(int argc, char **argv, char **envp)
{
	const char *name = strrchr(argv[0], '/');

	name = name ? name + 1 : argv[0];
	if (!strcmp(name, "timeout"))
		return timeout_main(argc, argv, envp);
	return init_main();
}
