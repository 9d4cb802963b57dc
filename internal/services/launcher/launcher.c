// Runs the ClickHouse that is inside libchdb.so as a process of its own.
//
//     launcher LIBCHDB ARGUMENT...
//
// The arguments are those of clickhouse-local. It runs until its query ends or
// a signal ends it: SIGTERM stops it at once, whatever was written before is
// in the kernel's hands.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef void *(*run_fn)(int argc, char **argv);
typedef const char *(*error_fn)(void *result);

int main(int argc, char **argv)
{
	if (argc < 2) {
		fputs("usage: launcher LIBCHDB ARGUMENT...\n", stderr);
		return 2;
	}
	// Whoever started us may have these ignored or blocked, which we would inherit.
	sigset_t set;
	sigemptyset(&set);
	int ends[] = {SIGTERM, SIGINT};
	for (unsigned i = 0; i < sizeof ends / sizeof *ends; i++) {
		signal(ends[i], SIG_DFL);
		sigaddset(&set, ends[i]);
	}
	sigprocmask(SIG_UNBLOCK, &set, NULL);

	// Without a terminal clickhouse-local ends its process for any exception of a
	// connection, such as one that a client which was killed leaves behind
	// (https://github.com/ClickHouse/ClickHouse/issues/115666). Nobody types on
	// this one; it is open as long as the process runs.
	int term = posix_openpt(O_RDWR | O_NOCTTY);
	int in = -1;
	if (term < 0 || grantpt(term) != 0 || unlockpt(term) != 0 || (in = open(ptsname(term), O_RDWR | O_NOCTTY)) < 0 || dup2(in, 0) < 0) {
		perror("launcher: a terminal as standard input");
		return 1;
	}

	void *lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL) {
		fprintf(stderr, "launcher: %s\n", dlerror());
		return 1;
	}
	run_fn run = (run_fn)dlsym(lib, "chdb_query_cmdline");
	error_fn error_of = (error_fn)dlsym(lib, "chdb_result_error");
	if (run == NULL || error_of == NULL) {
		fprintf(stderr, "launcher: %s is not the libchdb expected: %s\n", argv[1], dlerror());
		return 1;
	}
	argv[1] = "clickhouse";
	void *result = run(argc - 1, argv + 1);
	const char *message = result == NULL ? "no result" : error_of(result);
	if (message != NULL) {
		fprintf(stderr, "launcher: %s\n", message);
		return 1;
	}
	return 0;
}
