/*
 * gryphus-client NODE SCRIPT WORD...: runs `NODE SCRIPT WORD...`, at the command server of this agent if there is one, which answers
 * in a few milliseconds what a new process takes a hundred times as long for. src/command-server/ has the other half and the
 * protocol. Where the server is not there, is busy, or does not answer this command, Node is executed: nothing has been done then.
 *
 * One small program without a library, because it starts faster, runs on any Linux, and adds little to the package.
 */
#include <stddef.h>
#include <stdint.h>

#include <linux/un.h>
#include <asm/errno.h>
#include <asm/ioctls.h>
#include <asm/signal.h>
#include <asm/termios.h>
#include <asm/unistd.h>

#define PROTOCOL "1"
#define MOST (1 << 20)
#define OUT_FAILED 74
#define LOST 70
#define AF_UNIX 1
#define SOCK_STREAM 1
#define CLOEXEC 02000000

/* A frame of the answer: one byte that says what it is, and in four, little-endian, the length of what follows, or the exit status. */
enum { TAKEN = 0, OUT = 1, ERR = 2, STATUS = 3, ELSEWHERE = 4 };

#if defined(__x86_64__)
static long call(long n, long a, long b, long c, long d) {
    long out;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(out) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return out;
}
__asm__(".globl _start\n_start:\n xor %ebp,%ebp\n mov %rsp,%rdi\n and $-16,%rsp\n call begin\n");
#elif defined(__aarch64__)
static long call(long n, long a, long b, long c, long d) {
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
__asm__(".globl _start\n_start:\n mov x29,#0\n mov x0,sp\n and sp,x0,#-16\n b begin\n");
#else
#error "for x86-64 and arm64"
#endif

static char buffer[MOST];

/* The compiler calls it for initial values. */
__attribute__((used)) void *memset(void *to, int byte, size_t n);
void *memset(void *to, int byte, size_t n) {
    for (volatile char *at = to; n > 0; n--) *at++ = (char)byte;
    return to;
}

static void leave(int status) {
    for (;;) call(__NR_exit_group, status, 0, 0, 0);
}

static size_t length(const char *text) {
    size_t n = 0;
    while (text[n]) n++;
    return n;
}

/* The value of NAME= in the environment; NULL if it is not set or empty. */
static const char *variable(char **env, const char *name) {
    size_t n = length(name);
    for (; *env; env++) {
        size_t i = 0;
        while (i < n && (*env)[i] == name[i]) i++;
        if (i == n && (*env)[n] == '=') return (*env)[n + 1] ? *env + n + 1 : NULL;
    }
    return NULL;
}

/* Copies TEXT with its NUL to AT; where the NUL is, or 0 if it does not fit into MOST bytes. */
static size_t put(char *to, size_t at, size_t most, const char *text) {
    size_t n = length(text);
    if (at + n + 1 > most) return 0;
    for (size_t i = 0; i <= n; i++) to[at + i] = text[i];
    return at + n;
}

static int path_of(char *to, size_t most, const char *a, const char *b) {
    size_t at = put(to, 0, most, a);
    return at && put(to, at, most, b) ? 1 : 0;
}

/* The rules of src/config/paths.ts; a path that is too long for a socket has no server. */
static int socket_path(char *to, size_t most, char **env) {
    const char *own = variable(env, "GRYPHUS_HOME");
    if (own) return path_of(to, most, own, "/state/run/commands");
    const char *state = variable(env, "XDG_STATE_HOME");
    if (state && state[0] == '/') return path_of(to, most, state, "/gryphus/run/commands");
    const char *home = variable(env, "HOME");
    return home && home[0] == '/' && path_of(to, most, home, "/.local/state/gryphus/run/commands");
}

static const char *digits_of(char digits[12], unsigned value, unsigned base) {
    char *at = digits + 11;
    *at = 0;
    do *--at = (char)('0' + value % base);
    while (value /= base);
    return at;
}

/* 0, or the error: the reader of an output may have gone. */
static long write_all(int fd, const char *from, size_t n) {
    while (n > 0) {
        long done = call(__NR_write, fd, (long)from, (long)n, 0);
        if (done == -EINTR) continue;
        if (done == -EAGAIN) {
            struct { int fd; short events, got; } wait = {fd, 4, 0};
#ifdef __NR_poll
            call(__NR_poll, (long)&wait, 1, -1, 0);
#else
            call(__NR_ppoll, (long)&wait, 1, 0, 0);
#endif
            continue;
        }
        if (done < 0) return done;
        from += done;
        n -= (size_t)done;
    }
    return 0;
}

static int read_all(int fd, char *to, size_t n) {
    while (n > 0) {
        long got = call(__NR_read, fd, (long)to, (long)n, 0);
        if (got == -EINTR) continue;
        if (got <= 0) return 0;
        to += got;
        n -= (size_t)got;
    }
    return 1;
}

static unsigned number_of(const unsigned char *four) {
    return four[0] | (unsigned)four[1] << 8 | (unsigned)four[2] << 16 | (unsigned)four[3] << 24;
}

/* The request: protocol, mask, whether outputs are terminals and their width, directory, and words and variables with their counts. */
static size_t request(char **argv, char **env) {
    char digits[12];
    struct winsize size = {0};
    unsigned mask = (unsigned)call(__NR_umask, 077, 0, 0, 0);
    call(__NR_umask, mask, 0, 0, 0);
    const int out = call(__NR_ioctl, 1, TIOCGWINSZ, (long)&size, 0) == 0;
    const unsigned width = out ? size.ws_col : 0;
    const int err = call(__NR_ioctl, 2, TIOCGWINSZ, (long)&size, 0) == 0;
    size_t at = 4;
#define FIELD(text)                             \
    do {                                        \
        size_t end = put(buffer, at, MOST, text); \
        if (!end) return 0;                     \
        at = end + 1;                           \
    } while (0)
    FIELD(PROTOCOL);
    FIELD(digits_of(digits, mask, 8));
    FIELD(out ? "1" : "0");
    FIELD(err ? "1" : "0");
    FIELD(digits_of(digits, width, 10));
    if (at + 4096 > MOST) return 0;
    long cwd = call(__NR_getcwd, (long)(buffer + at), 4096, 0, 0);
    if (cwd <= 0 || buffer[at] != '/') return 0;
    at += (size_t)cwd;
    unsigned words = 0;
    while (argv[words]) words++;
    FIELD(digits_of(digits, words, 10));
    for (; *argv; argv++) FIELD(*argv);
    for (; *env; env++) FIELD(*env);
    for (int i = 0; i < 4; i++) buffer[i] = (char)((at - 4) >> (8 * i));
    return at;
}

static int connected(char **env) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (!socket_path(name.sun_path, sizeof name.sun_path, env)) return -1;
    long fd = call(__NR_socket, AF_UNIX, SOCK_STREAM | CLOEXEC, 0, 0);
    if (fd < 0) return -1;
    if (call(__NR_connect, fd, (long)&name, sizeof name, 0) == 0) return (int)fd;
    call(__NR_close, fd, 0, 0, 0);
    return -1;
}

/* Shows the answer and leaves with its status; returns if the command is to be run here. */
static void ask(int fd, char **argv, char **env) {
    /* The writes of a closed connection or output are looked at one by one. */
    struct { void (*handler)(int); unsigned long flags; void *restorer; unsigned long mask; } ignored = {SIG_IGN, 0, 0, 0}, before;
    size_t n = request(argv, env);
    if (!n) return;
    call(__NR_rt_sigaction, SIGPIPE, (long)&ignored, (long)&before, 8);
    int taken = 0;
    if (write_all(fd, buffer, n) == 0) {
        unsigned char head[5];
        while (read_all(fd, (char *)head, sizeof head)) {
            unsigned left = number_of(head + 1);
            if (head[0] == ELSEWHERE) {
                taken = 0;
                break;
            }
            if (head[0] == TAKEN) taken = 1;
            if (head[0] == STATUS) leave((int)left);
            if (head[0] != OUT && head[0] != ERR) continue;
            while (left > 0) {
                size_t some = left < MOST ? left : MOST;
                if (!read_all(fd, buffer, some)) goto lost;
                long failed = write_all(head[0], buffer, some);
                /* `squeue | head` is not a failure. */
                if (failed && head[0] == OUT) leave(failed == -EPIPE ? 0 : OUT_FAILED);
                left -= (unsigned)some;
            }
        }
    }
lost:
    call(__NR_rt_sigaction, SIGPIPE, (long)&before, 0, 8);
    if (!taken) return;
    static const char said[] = "gryphus: the command server ended before the command had been answered; whether it was done is not known.\n";
    write_all(2, said, sizeof said - 1);
    leave(LOST);
}

__attribute__((used, noreturn)) void begin(long *stack);
void begin(long *stack) {
    char **argv = (char **)(stack + 1);
    char **env = argv + stack[0] + 1;
    static const char usage[] = "usage: gryphus-client NODE SCRIPT WORD...\n";
    if (stack[0] < 3) {
        write_all(2, usage, sizeof usage - 1);
        leave(2);
    }
    int fd = connected(env);
    if (fd >= 0) {
        ask(fd, argv + 2, env);
        call(__NR_close, fd, 0, 0, 0);
    }
    call(__NR_execve, (long)argv[1], (long)(argv + 1), (long)env, 0);
    static const char cannot[] = "gryphus: Node cannot be started; write the commands again: gryphus compat install\n";
    write_all(2, cannot, sizeof cannot - 1);
    leave(127);
    __builtin_unreachable();
}
