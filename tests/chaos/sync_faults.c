/* Makes fsync of an upload slow, or has its process die there. Loaded into a node with LD_PRELOAD.
   A shared file says how: a double, the seconds an fsync of a part takes; below 0: SIGKILL instead. Removing the file ends
   what waits. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double wanted(void) {
  double seconds = 0;
  const char *path = getenv("MUSTER_TEST_SYNC_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return 0;
  if (read(file, &seconds, sizeof seconds) != sizeof seconds) seconds = 0;
  close(file);
  return seconds;
}

static int is_part(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 5) return 0;
  path[length] = 0;
  return strcmp(path + length - 5, ".part") == 0;
}

int fsync(int fd) {
  double seconds = is_part(fd) ? wanted() : 0;
  if (seconds < 0) kill(getpid(), SIGKILL);
  for (; seconds > 0 && access(getenv("MUSTER_TEST_SYNC_FILE"), F_OK) == 0; seconds -= 0.02) {
    struct timespec rest = {0, 20000000};
    nanosleep(&rest, NULL);
  }
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  return real(fd);
}
