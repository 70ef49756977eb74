/* Answers every question for the time of day with a constant added, in microseconds: SERVER_CLOCK_SKEW. Monotonic clocks stay.

   The kernel does not know of it: a wait until a time of that clock would take minutes more, or none at all. So it is handed on
   in the kernel's time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long skew(void) {
    const char *text = getenv("SERVER_CLOCK_SKEW");
    return text ? atol(text) : 0;
}

static void now(struct timespec *at) {
    syscall(SYS_clock_gettime, CLOCK_REALTIME, at);
    long micros = at->tv_nsec / 1000 + skew() % 1000000;
    at->tv_sec += skew() / 1000000;
    at->tv_nsec %= 1000;
    while (micros < 0) { micros += 1000000; at->tv_sec--; }
    while (micros >= 1000000) { micros -= 1000000; at->tv_sec++; }
    at->tv_nsec += micros * 1000;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
        now(at);
        return 0;
    }
    return syscall(SYS_clock_gettime, clock, at);
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec found;
    (void)zone;
    now(&found);
    at->tv_sec = found.tv_sec;
    at->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec found;
    now(&found);
    if (at) *at = found.tv_sec;
    return found.tv_sec;
}

/* Times of a monotonic clock are those since the machine started: far below any time of day. */
static struct timespec real(const struct timespec *until) {
    struct timespec found = *until;
    if (found.tv_sec > 1000000000L) found.tv_sec -= skew() / 1000000;
    return found;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, const struct timespec *restrict until) {
    static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!next) next = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec found = real(until);
    return next(cond, mutex, &found);
}

int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, clockid_t clock,
                           const struct timespec *restrict until) {
    static int (*next)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
    if (!next) next = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
    struct timespec found = real(until);
    return next(cond, mutex, clock, &found);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
    static int (*next)(sem_t *, const struct timespec *);
    if (!next) next = dlsym(RTLD_NEXT, "sem_timedwait");
    struct timespec found = real(until);
    return next(semaphore, &found);
}
