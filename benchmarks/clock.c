/* Moves the clock that a process reads by OFFSET_SECONDS. Loaded with LD_PRELOAD by _clock.py.

   Only the time of day moves. Monotonic clocks, and with them every timeout and pause of Python, stay as they are.
   libfaketime 0.9.10 moves the ends of such pauses, too, and time.sleep of Python 3.11 then fails with EINVAL. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
    static long seconds;
    static int known;
    if (!known) {
        const char *text = getenv("OFFSET_SECONDS");
        seconds = text ? atol(text) : 0;
        known = 1;
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int answer = (int)syscall(SYS_clock_gettime, clock, now);
    if (!answer && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
    return answer;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}
