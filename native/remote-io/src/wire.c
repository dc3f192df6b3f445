#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "say.h"

#define LONGEST_ANSWER (32 << 20)
// The worker's answer when the job's lease is over: the job is about to be evicted.
#define OFFLINE (-100000)

// A connection whose requests follow each other. Its name and numbers survive a cut, so that home knows a request that comes again.
struct lane {
  int fd;
  uint32_t number;
  char name[24];
  struct lane *next;
};

static const char *config_file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static struct lane lanes[LANES], *free_lanes;
static uid_t home_owner = -1, home_group = -1;

void open_wire(const char *config) {
  config_file = config;
  for (int i = 0; i < LANES; i++) {
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) fail_errno("no random numbers");
    lanes[i].fd = -1;
    snprintf(lanes[i].name, sizeof lanes[i].name, "%016lx.%d", (unsigned long)random, i);
    lanes[i].next = free_lanes;
    free_lanes = &lanes[i];
  }
}

static bool send_all(int fd, struct iovec *parts, int count) {
  while (count > 0) {
    ssize_t sent = writev(fd, parts, count);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    while (count > 0 && (size_t)sent >= parts->iov_len) {
      sent -= parts->iov_len;
      parts++;
      count--;
    }
    if (count > 0) {
      parts->iov_base = (char *)parts->iov_base + sent;
      parts->iov_len -= sent;
    }
  }
  return true;
}

static bool read_all(int fd, void *to, size_t bytes) {
  for (size_t got = 0; got < bytes;) {
    ssize_t part = read(fd, (char *)to + got, bytes - got);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return false;
    got += part;
  }
  return true;
}

// Sends a line, and reads whether it is good.
static bool say_line(int fd, const char *line) {
  char said[32];
  if (!send_all(fd, &(struct iovec){(void *)(uintptr_t)line, strlen(line)}, 1)) return false;
  for (size_t i = 0; i < sizeof said; i++) {
    if (!read_all(fd, said + i, 1)) return false;
    if (said[i] == '\n') return said[0] == '0' && i == 1;
  }
  return false;
}

static bool connect_lane(struct lane *lane) {
  char text[256] = "", host[64], cookie[128], line[192];
  int port, file = open(config_file, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  if (got <= 0 || sscanf(text, "%63s %d %127s", host, &port, cookie) != 3) return false;
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
  if (inet_pton(AF_INET, host, &to.sin_addr) != 1) return false;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  if (fd < 0) return false;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) {
    snprintf(line, sizeof line, "cookie %s\n", cookie);
    if (say_line(fd, line)) {
      snprintf(line, sizeof line, "remote_io %s\n", lane->name);
      if (say_line(fd, line)) {
        lane->fd = fd;
        return true;
      }
    }
  }
  close(fd);
  return false;
}

static uint8_t *put(uint8_t *to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) *to++ = value >> (8 * i);
  return to;
}

static bool send_request(struct lane *lane, const struct request *request, bool again) {
  size_t words[2] = {0};
  for (int i = 0; i < 2; i++) words[i] = request->words[i] ? strlen(request->words[i]) : 0;
  uint8_t head[4 + 4 + 1 + 1 + 4 * 8 + 2 * 4], *end = head;
  end = put(end, sizeof head - 4 + words[0] + words[1] + request->length, 4);
  end = put(end, lane->number, 4);
  end = put(end, request->call, 1);
  end = put(end, again, 1);
  for (int i = 0; i < 4; i++) end = put(end, request->numbers[i], 8);
  for (int i = 0; i < 2; i++) end = put(end, words[i], 4);
  struct iovec parts[] = {
      {head, sizeof head},
      {(void *)(uintptr_t)request->words[0], words[0]},
      {(void *)(uintptr_t)request->words[1], words[1]},
      {(void *)(uintptr_t)request->bytes, request->length},
  };
  return send_all(lane->fd, parts, 4);
}

static bool read_answer(struct lane *lane, struct answer *answer) {
  uint8_t head[12];
  if (!read_all(lane->fd, head, sizeof head)) return false;
  uint32_t size = number_at(head);
  if (size < 8 || size > LONGEST_ANSWER) return false;
  answer->result = (int64_t)number_at(head + 4);
  answer->length = size - 8;
  answer->bytes = malloc(answer->length > 0 ? answer->length : 1);
  if (!answer->bytes) fail("no memory is left");
  if (read_all(lane->fd, answer->bytes, answer->length)) return true;
  free(answer->bytes);
  return false;
}

static void rest(void) { nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL); }

struct answer ask(const struct request *request) {
  pthread_mutex_lock(&lock);
  while (!free_lanes) pthread_cond_wait(&freed, &lock);
  struct lane *lane = free_lanes;
  free_lanes = lane->next;
  pthread_mutex_unlock(&lock);
  struct answer answer = {0};
  lane->number++;
  for (bool again = false;; again = true) {
    if ((lane->fd >= 0 || connect_lane(lane)) && send_request(lane, request, again) && read_answer(lane, &answer)) {
      if (answer.result != OFFLINE) break;
      free(answer.bytes);
      answer.bytes = NULL;
    } else if (lane->fd >= 0) {
      close(lane->fd);
      lane->fd = -1;
    }
    rest();
  }
  pthread_mutex_lock(&lock);
  lane->next = free_lanes;
  free_lanes = lane;
  pthread_cond_signal(&freed);
  pthread_mutex_unlock(&lock);
  return answer;
}

int64_t ask_result(const struct request *request) {
  struct answer answer = ask(request);
  free(answer.bytes);
  return answer.result;
}

uint64_t number_at(const uint8_t *bytes) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; i--) value = value << 8 | bytes[i];
  return value;
}

void map_owner(uint64_t home_uid, uint64_t home_gid) {
  home_owner = home_uid;
  home_group = home_gid;
}

static struct timespec time_of(uint64_t nanoseconds) {
  int64_t time = (int64_t)nanoseconds;
  return (struct timespec){.tv_sec = time / 1000000000, .tv_nsec = time % 1000000000};
}

bool read_status(const uint8_t *bytes, size_t length, struct stat *status) {
  if (length < STATUS_BYTES) return false;
  uint64_t n[13];
  for (int i = 0; i < 13; i++) n[i] = number_at(bytes + 8 * i);
  *status = (struct stat){
      .st_dev = n[0],
      .st_ino = n[1],
      .st_mode = n[2],
      .st_nlink = n[3],
      .st_uid = n[4] == home_owner ? geteuid() : n[4],
      .st_gid = n[5] == home_group ? getegid() : n[5],
      .st_rdev = n[6],
      .st_size = n[7],
      .st_blksize = n[8],
      .st_blocks = n[9],
      .st_atim = time_of(n[10]),
      .st_mtim = time_of(n[11]),
      .st_ctim = time_of(n[12]),
  };
  return true;
}
