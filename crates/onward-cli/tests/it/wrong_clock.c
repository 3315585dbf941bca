/* A wall clock that is wrong by WRONG_CLOCK_SECONDS, for programs that preload this library. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    const char *seconds = getenv("WRONG_CLOCK_SECONDS");
    int answer = (int)syscall(SYS_clock_gettime, clock, time);
    if (answer == 0 && clock == CLOCK_REALTIME && seconds != NULL)
        time->tv_sec += atol(seconds);
    return answer;
}
