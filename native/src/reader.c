#include "reader.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"

#define MOST_PROCESSES 1024
#define MOST_XSAVE (1 << 20)
#define LAST_FD (1 << 20)

static const char *image_path;

static _Noreturn void damaged(const char *what) { fail("%s is not a whole image: %s", image_path, what); }

// The part of a section that has not been read.
struct rest {
  const unsigned char *at;
  uint64_t length;
};

static const unsigned char *take(struct rest *rest, uint64_t length) {
  if (length > rest->length) damaged("a section is too short");
  const unsigned char *at = rest->at;
  rest->at += length;
  rest->length -= length;
  return at;
}

static void take_into(struct rest *rest, void *to, size_t length) { memcpy(to, take(rest, length), length); }

static char *take_text(struct rest *rest, uint64_t length) {
  const unsigned char *bytes = take(rest, length);
  if (length > 4096 || memchr(bytes, 0, length)) damaged("a name is invalid");
  char *text = allocate(length + 1);
  memcpy(text, bytes, length);
  return text;
}

static void nothing_left(const struct rest *rest) {
  if (rest->length != 0) damaged("a section is too long");
}

bool is_below(const char *name) {
  if (*name == 0) return false;
  for (const char *at = name;;) {
    size_t length = strcspn(at, "/");
    if (length == 0 || (length == 1 && at[0] == '.') || (length == 2 && at[0] == '.' && at[1] == '.')) return false;
    if (at[length] == 0) return true;
    at += length + 1;
  }
}

// A place in the sandbox, "." for the sandbox itself, or an absolute path.
static bool is_place(const char *path) { return *path == '/' || strcmp(path, ".") == 0 || is_below(path); }

static void read_job(struct image *image, struct rest rest) {
  if (image->sandbox) damaged("it begins twice");
  take_into(&rest, &image->job, sizeof image->job);
  image->sandbox = take_text(&rest, rest.length);
  const struct image_job *job = &image->job;
  if (job->processes == 0 || job->processes > MOST_PROCESSES) damaged("it has no processes");
  if (job->vdso_bytes % PAGE != 0 || job->vdso_bytes > (64UL << 20)) damaged("its vdso has no size");
  if (*image->sandbox != '/') damaged("its sandbox has no path");
}

static void read_one_file(struct image *image, struct rest rest) {
  image->files = grown(image->files, image->file_count, sizeof *image->files);
  struct read_file *one = &image->files[image->file_count++];
  take_into(&rest, &one->file, sizeof one->file);
  one->name = take_text(&rest, one->file.name_bytes);
  if (!is_below(one->name)) damaged("a file is outside of the sandbox");
  if (one->file.kind == 'l') {
    one->content = (const unsigned char *)take_text(&rest, one->file.content_bytes);
    if (*one->content == 0) damaged("a link leads nowhere");
  } else {
    one->content = take(&rest, one->file.content_bytes);
    if (one->file.kind != 'f' && one->file.content_bytes != 0) damaged("a directory has content");
  }
  if (!strchr("fdlp", (int)one->file.kind) || one->file.kind == 0 || one->file.kind > 127) damaged("a file has an unknown kind");
  if (one->file.mode > 07777) damaged("a file's mode is invalid");
  nothing_left(&rest);
}

static void read_description(struct image *image, struct rest rest) {
  image->descriptions = grown(image->descriptions, image->description_count, sizeof *image->descriptions);
  struct read_description *one = &image->descriptions[image->description_count++];
  struct image_description *is = &one->description;
  take_into(&rest, is, sizeof *is);
  one->path = take_text(&rest, is->path_bytes);
  one->content_bytes = rest.length;
  one->content = take(&rest, rest.length);
  if (is->kind < OPEN_SANDBOX || is->kind > OPEN_PIPE) damaged("an open file has an unknown kind");
  bool inside = is->kind == OPEN_SANDBOX;
  bool outside = is->kind == OPEN_ELSEWHERE || is->kind == OPEN_DEVICE;
  if (inside && strcmp(one->path, ".") != 0 && !is_below(one->path)) damaged("an open file is outside of the sandbox");
  if (outside && *one->path != '/') damaged("an open file has no path");
  if (!inside && !outside && *one->path != 0) damaged("an open file has a path");
  if (is->kind == OPEN_ELSEWHERE && (is->flags & O_ACCMODE) != O_RDONLY) damaged("it writes outside of the sandbox");
  if (is->kind != OPEN_UNLINKED && is->kind != OPEN_PIPE && one->content_bytes != 0) damaged("a name has content");
  if (is->position > INT64_MAX || is->size > INT64_MAX) damaged("a file is too long");
  if (is->kind == OPEN_PIPE && ((is->flags & O_ACCMODE) == O_RDWR || one->content_bytes > is->size)) damaged("a pipe is invalid");
}

static bool is_limits(const struct image_layout *layout) {
  const uint64_t *fields = (const uint64_t *)layout;
  for (size_t i = 0; i < sizeof *layout / 8; i++)
    if (fields[i] >= USER_END) return false;
  return true;
}

static void read_process(struct image *image, struct rest rest) {
  if (image->process_count == image->job.processes) damaged("it has more processes than it says");
  image->processes = grown(image->processes, image->process_count, sizeof *image->processes);
  struct read_process *one = &image->processes[image->process_count];
  take_into(&rest, &one->process, sizeof one->process);
  one->directory = take_text(&rest, one->process.directory_bytes);
  one->program = take_text(&rest, one->process.program_bytes);
  nothing_left(&rest);
  if (!is_place(one->directory)) damaged("a working directory has no path");
  if (*one->program != 0 && !is_place(one->program)) damaged("a program has no path");
  if (!is_limits(&one->process.layout)) damaged("an address is invalid");
  if (one->process.pid <= 1) damaged("a process has no number");
  bool known = image->process_count == 0 && one->process.parent == 0;
  for (size_t i = 0; i < image->process_count; i++) {
    known |= image->processes[i].process.pid == one->process.parent;
    if (image->processes[i].process.pid == one->process.pid) damaged("two processes have one number");
  }
  if (!known) damaged("a process has no parent");
  if (one->process.umask > 0777) damaged("a umask is invalid");
  image->process_count++;
}

static struct read_process *last_of(struct image *image) {
  if (image->process_count == 0) damaged("something belongs to no process");
  return &image->processes[image->process_count - 1];
}

static void read_fd(struct image *image, struct rest rest) {
  struct read_process *process = last_of(image);
  process->fds = grown(process->fds, process->fd_count, sizeof *process->fds);
  struct image_fd *one = &process->fds[process->fd_count++];
  take_into(&rest, one, sizeof *one);
  nothing_left(&rest);
  if (one->fd < 0 || one->fd > LAST_FD || one->description >= image->description_count) damaged("a descriptor is invalid");
}

static void read_thread(struct image *image, struct rest rest) {
  struct read_process *process = last_of(image);
  process->threads = grown(process->threads, process->thread_count, sizeof *process->threads);
  struct read_thread *one = &process->threads[process->thread_count++];
  take_into(&rest, &one->thread, sizeof one->thread);
  if (one->thread.xsave_bytes > MOST_XSAVE) damaged("a thread's state is too long");
  one->xsave = take(&rest, one->thread.xsave_bytes);
  nothing_left(&rest);
  one->thread.name[sizeof one->thread.name - 1] = 0;
  if (one->thread.tid <= 1) damaged("a thread has no number");
  if (process->thread_count == 1 && one->thread.tid != process->process.pid) damaged("a process has no first thread");
}

static void read_signal(struct image *image, struct rest rest) {
  struct read_process *process = last_of(image);
  process->signals = grown(process->signals, process->signal_count, sizeof *process->signals);
  struct image_signal *one = &process->signals[process->signal_count++];
  take_into(&rest, one, sizeof *one);
  nothing_left(&rest);
  if (one->info.si_signo < 1 || one->info.si_signo > 64) damaged("a signal is invalid");
}

static void read_map(struct image *image, struct rest rest) {
  struct read_process *process = last_of(image);
  uint64_t before = process->map_count == 0 ? 0 : process->maps[process->map_count - 1].map.end;
  process->maps = grown(process->maps, process->map_count, sizeof *process->maps);
  struct read_map *one = &process->maps[process->map_count++];
  struct image_map *map = &one->map;
  take_into(&rest, map, sizeof *map);
  one->path = take_text(&rest, rest.length);
  if (map->start % PAGE || map->end % PAGE || map->offset % PAGE || map->start < before || map->end <= map->start ||
      map->end > USER_END)
    damaged("a map has no place");
  if (map->kind < MAP_OF_PAGES || map->kind > MAP_OF_KERNEL || map->protection > 7) damaged("a map has an unknown kind");
  if ((map->kind == MAP_OF_SHARED_FILE) != is_below(one->path)) damaged("a map is of a file outside of the sandbox");
}

static void read_pages(struct image *image, struct rest rest) {
  struct read_process *process = last_of(image);
  process->pages = grown(process->pages, process->page_count, sizeof *process->pages);
  struct read_pages *one = &process->pages[process->page_count++];
  take_into(&rest, &one->pages, sizeof one->pages);
  one->content = take(&rest, one->pages.bytes);
  nothing_left(&rest);
  uint64_t start = one->pages.address, bytes = one->pages.bytes;
  if (start % PAGE || bytes % PAGE || bytes == 0 || start >= USER_END) damaged("pages have no place");
  for (size_t i = process->map_count; i-- > 0;) {
    const struct image_map *map = &process->maps[i].map;
    if (start < map->start) continue;
    if (start < map->end && bytes <= map->end - start && map->kind != MAP_OF_KERNEL && map->kind != MAP_OF_SHARED_FILE) return;
    break;
  }
  damaged("pages are outside of their map");
}

static void (*const READ[])(struct image *, struct rest) = {
    [SECTION_JOB] = read_job,         [SECTION_FILE] = read_one_file, [SECTION_DESCRIPTION] = read_description,
    [SECTION_PROCESS] = read_process, [SECTION_FD] = read_fd,         [SECTION_THREAD] = read_thread,
    [SECTION_SIGNAL] = read_signal,   [SECTION_MAP] = read_map,       [SECTION_PAGES] = read_pages,
};

static void complete(const struct image *image) {
  if (!image->sandbox || image->process_count != image->job.processes) damaged("processes are missing");
  if (image->description_count != image->job.descriptions) damaged("open files are missing");
  for (size_t i = 0; i < image->process_count; i++) {
    if (image->processes[i].thread_count == 0 || image->processes[i].map_count == 0) damaged("a process is empty");
  }
}

struct image *read_image(const char *path) {
  image_path = path;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  struct stat found;
  if (file < 0 || fstat(file, &found)) fail_errno("the image %s cannot be read", path);
  struct image_header header;
  if (!S_ISREG(found.st_mode) || (uint64_t)found.st_size < sizeof header) damaged("it is too short");
  const unsigned char *bytes = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  if (bytes == MAP_FAILED) fail_errno("the image %s cannot be read", path);
  close(file);
  memcpy(&header, bytes, sizeof header);
  if (memcmp(header.magic, IMAGE_MAGIC, sizeof header.magic) != 0) damaged("it has no header");
  if (header.version != IMAGE_VERSION)
    fail("the image %s is of version %u; this program reads version %u", path, header.version, IMAGE_VERSION);
  if (header.machine != IMAGE_X86_64) fail("the image %s is of another processor's architecture", path);
  if (header.body != (uint64_t)found.st_size - sizeof header) damaged("its length is wrong");
  struct rest rest = {bytes + sizeof header, header.body};
#ifndef WITHOUT_HASH
  if (hash_more(hash_start(), rest.at, rest.length) != header.hash) damaged("its checksum is wrong");
#endif
  struct image *image = allocate(sizeof *image);
  image->bytes = (uint64_t)found.st_size;
  for (;;) {
    struct section section;
    take_into(&rest, &section, sizeof section);
    if (section.length > rest.length) damaged("a section is too long");
    struct rest content = {take(&rest, section.length), section.length};
    take(&rest, (8 - section.length % 8) % 8);
    if (section.kind == SECTION_END) break;
    bool first = section.kind == SECTION_JOB;
    if (section.kind >= sizeof READ / sizeof *READ || !READ[section.kind] || first != !image->sandbox)
      damaged("a section is unknown");
    READ[section.kind](image, content);
  }
  nothing_left(&rest);
  complete(image);
  return image;
}
