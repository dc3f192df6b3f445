#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lz.h"
#include "say.h"

#define MOST_PROCESSES 1024
#define MOST_STATE (1 << 20)
#define LAST_FD (1 << 20)

// Of the file that is being read.
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

static bool is_block(const struct image *image, const struct image_block *block) {
  const struct image_header *header = &image->header;
  if (block->file > header->base_count || block->bytes == 0 || block->bytes > BLOCK) return false;
  if (block->stored == 0 || block->stored > block->bytes) return false;
  uint64_t end = block->file == 0 ? header->sections_at : header->bases[block->file - 1].bytes;
  return block->at >= sizeof *header && block->at <= end && block->stored <= end - block->at;
}

// The rest of a section: blocks.
static struct content take_blocks(const struct image *image, struct rest *rest, uint64_t bytes) {
  struct content content = {.bytes = bytes, .count = rest->length / sizeof *content.blocks};
  content.blocks = allocate(content.count * sizeof *content.blocks);
  take_into(rest, content.blocks, content.count * sizeof *content.blocks);
  uint64_t sum = 0;
  for (size_t i = 0; i < content.count; i++) {
    if (!is_block(image, &content.blocks[i])) damaged("a block has no place");
    sum += content.blocks[i].bytes;
  }
  if (sum != bytes || rest->length != 0) damaged("content is missing");
  return content;
}

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
  image->sandbox_files = grown(image->sandbox_files, image->file_count, sizeof *image->sandbox_files);
  struct read_file *one = &image->sandbox_files[image->file_count++];
  take_into(&rest, &one->file, sizeof one->file);
  one->name = take_text(&rest, one->file.name_bytes);
  if (!is_below(one->name)) damaged("a file is outside of the sandbox");
  if (one->file.kind == 'l') {
    one->target = take_text(&rest, one->file.content_bytes);
    if (*one->target == 0) damaged("a link leads nowhere");
    nothing_left(&rest);
  } else {
    one->content = take_blocks(image, &rest, one->file.content_bytes);
    if (one->file.kind != 'f' && one->file.content_bytes != 0) damaged("a directory has content");
  }
  if (!strchr("fdlp", (int)one->file.kind) || one->file.kind == 0 || one->file.kind > 127) damaged("a file has an unknown kind");
  if (one->file.mode > 07777) damaged("a file's mode is invalid");
}

static void read_description(struct image *image, struct rest rest) {
  image->descriptions = grown(image->descriptions, image->description_count, sizeof *image->descriptions);
  struct read_description *one = &image->descriptions[image->description_count++];
  struct image_description *is = &one->description;
  take_into(&rest, is, sizeof *is);
  one->path = take_text(&rest, is->path_bytes);
  one->content = take_blocks(image, &rest, is->content_bytes);
  if (is->kind < OPEN_SANDBOX || is->kind > OPEN_PIPE) damaged("an open file has an unknown kind");
  bool inside = is->kind == OPEN_SANDBOX;
  bool outside = is->kind == OPEN_ELSEWHERE || is->kind == OPEN_DEVICE;
  if (inside && strcmp(one->path, ".") != 0 && !is_below(one->path)) damaged("an open file is outside of the sandbox");
  if (outside && *one->path != '/') damaged("an open file has no path");
  if (!inside && !outside && *one->path != 0) damaged("an open file has a path");
  if (is->kind == OPEN_ELSEWHERE && (is->flags & O_ACCMODE) != O_RDONLY) damaged("it writes outside of the sandbox");
  if (is->kind != OPEN_UNLINKED && is->kind != OPEN_PIPE && is->content_bytes != 0) damaged("a name has content");
  if (is->position > INT64_MAX || is->size > INT64_MAX) damaged("a file is too long");
  if (is->kind == OPEN_PIPE && ((is->flags & O_ACCMODE) == O_RDWR || is->content_bytes > is->size)) damaged("a pipe is invalid");
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

static bool has_descriptor(const struct read_process *process, const struct image_lock *lock) {
  for (size_t i = 0; i < process->fd_count; i++)
    if (process->fds[i].fd == lock->fd && process->fds[i].description == lock->description) return true;
  return false;
}

static void read_lock(struct image *image, struct rest rest) {
  struct image_lock lock;
  take_into(&rest, &lock, sizeof lock);
  nothing_left(&rest);
  if (lock.kind < LOCK_OF_OPEN || lock.kind > LOCK_OF_PROCESS || lock.writes > 1 || lock.start > INT64_MAX ||
      lock.length > INT64_MAX - lock.start)
    damaged("a lock is invalid");
  if (lock.description >= image->description_count) damaged("a lock is on no file");
  uint32_t kind = image->descriptions[lock.description].description.kind;
  if (kind != OPEN_SANDBOX && kind != OPEN_UNLINKED) damaged("a lock is outside of the sandbox");
  if (lock.kind != LOCK_OF_PROCESS) {
    image->locks = grown(image->locks, image->lock_count, sizeof *image->locks);
    image->locks[image->lock_count++] = lock;
    return;
  }
  struct read_process *process = last_of(image);
  if (!has_descriptor(process, &lock)) damaged("a lock is at no descriptor");
  process->locks = grown(process->locks, process->lock_count, sizeof *process->locks);
  process->locks[process->lock_count++] = lock;
}

static void read_thread(struct image *image, struct rest rest) {
  struct read_process *process = last_of(image);
  process->threads = grown(process->threads, process->thread_count, sizeof *process->threads);
  struct read_thread *one = &process->threads[process->thread_count++];
  take_into(&rest, &one->thread, sizeof one->thread);
  if (one->thread.state_bytes > MOST_STATE) damaged("a thread's state is too long");
  one->state = take(&rest, one->thread.state_bytes);
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

static void check_pages(const struct image *image, const struct read_process *process, const struct image_pages *one) {
  uint64_t start = one->address, bytes = one->block.bytes;
  if (!is_block(image, &one->block) || start % PAGE || bytes % PAGE || start >= USER_END) damaged("pages have no place");
  // The last map that starts at or before them.
  size_t low = 0, high = process->map_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (process->maps[middle].map.start <= start) low = middle + 1;
    else high = middle;
  }
  const struct image_map *map = low == 0 ? NULL : &process->maps[low - 1].map;
  if (!map || start >= map->end || bytes > map->end - start || map->kind == MAP_OF_KERNEL || map->kind == MAP_OF_SHARED_FILE)
    damaged("pages are outside of their map");
}

static void read_pages(struct image *image, struct rest rest) {
  struct read_process *process = last_of(image);
  size_t count = rest.length / sizeof *process->pages;
  struct image_pages *all = realloc(process->pages, (process->page_count + count + 1) * sizeof *all);
  if (!all) fail("out of memory");
  process->pages = all;
  take_into(&rest, all + process->page_count, count * sizeof *all);
  nothing_left(&rest);
  for (size_t i = 0; i < count; i++) check_pages(image, process, &all[process->page_count++]);
}

static void (*const READ[])(struct image *, struct rest) = {
    [SECTION_JOB] = read_job,         [SECTION_FILE] = read_one_file, [SECTION_DESCRIPTION] = read_description,
    [SECTION_PROCESS] = read_process, [SECTION_FD] = read_fd,         [SECTION_THREAD] = read_thread,
    [SECTION_SIGNAL] = read_signal,   [SECTION_MAP] = read_map,       [SECTION_PAGES] = read_pages,
    [SECTION_LOCK] = read_lock,
};

static void complete(const struct image *image) {
  if (!image->sandbox || image->process_count != image->job.processes) damaged("processes are missing");
  if (image->description_count != image->job.descriptions) damaged("open files are missing");
  for (size_t i = 0; i < image->process_count; i++) {
    if (image->processes[i].thread_count == 0 || image->processes[i].map_count == 0) damaged("a process is empty");
  }
}

static uint64_t read_at(int file, void *to, uint64_t bytes, uint64_t at) {
  uint64_t done = 0;
  while (done < bytes) {
    ssize_t got = pread(file, (char *)to + done, bytes - done, (off_t)(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += (uint64_t)got;
  }
  return done;
}

// Opens a file with a header that this program understands. Returns its size.
static uint64_t open_one(const char *path, int *file, struct image_header *header) {
  *file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat found;
  if (*file < 0 || fstat(*file, &found)) fail_errno("the image %s cannot be read", path);
  if (!S_ISREG(found.st_mode) || read_at(*file, header, sizeof *header, 0) != sizeof *header) damaged("it is too short");
  if (memcmp(header->magic, IMAGE_MAGIC, sizeof header->magic) != 0) damaged("it has no header");
  if (header->version != IMAGE_VERSION)
    fail("the image %s is of version %u; this program reads version %u", path, header->version, IMAGE_VERSION);
  if (header->machine != IMAGE_MACHINE) fail("the image %s is of another kind of processor", path);
  uint64_t bytes = (uint64_t)found.st_size, at = header->sections_at;
  if (at < sizeof *header || at > bytes || header->sections_bytes != bytes - at) damaged("its length is wrong");
  if (header->base_count > MOST_BASES) damaged("it has too many bases");
  return bytes;
}

static void open_bases(struct image *image) {
  for (uint32_t i = 0; i < image->header.base_count; i++) {
    const struct image_base *base = &image->header.bases[i];
    struct image_header its;
    image_path = base_path(image->path, base->id);
    uint64_t bytes = open_one(image_path, &image->files[i + 1], &its);
    if (its.id != base->id || bytes != base->bytes) damaged("it is another one");
  }
  image_path = image->path;
}

static void read_sections(struct image *image) {
  struct image_header header = image->header;
  unsigned char *sections = allocate(header.sections_bytes);
  if (read_at(image->files[0], sections, header.sections_bytes, header.sections_at) != header.sections_bytes)
    damaged("it is too short");
#ifndef WITHOUT_HASH
  header.id = 0;
  if (hash_more(hash_more(hash_start(), &header, sizeof header), sections, header.sections_bytes) != image->header.id)
    damaged("its checksum is wrong");
#endif
  struct rest rest = {sections, header.sections_bytes};
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
  // They stay: threads' states are in them.
  nothing_left(&rest);
}

struct image *read_image(const char *path) {
  image_path = path;
  struct image *image = allocate(sizeof *image);
  image->path = path;
  image->bytes = open_one(path, &image->files[0], &image->header);
  open_bases(image);
  read_sections(image);
  complete(image);
  return image;
}

void close_image(const struct image *image) {
  for (uint32_t i = 0; i <= image->header.base_count; i++) close(image->files[i]);
}

void read_block(const struct image *image, const struct image_block *block, unsigned char *to) {
  unsigned char packed[BLOCK];
  uint64_t hash[2];
  bool plain = block->stored == block->bytes;
  if (read_at(image->files[block->file], plain ? to : packed, block->stored, block->at) != block->stored)
    damaged("a block cannot be read");
  if (!plain && !lz_decompress(packed, block->stored, to, block->bytes)) damaged("a block cannot be unpacked");
  hash_block(to, block->bytes, hash);
#ifndef WITHOUT_HASH
  if (hash[0] != block->hash[0] || hash[1] != block->hash[1]) damaged("a block's checksum is wrong");
#endif
}

bool write_content_to(int file, const struct image *image, const struct content *content) {
  unsigned char bytes[BLOCK];
  for (size_t i = 0; i < content->count; i++) {
    read_block(image, &content->blocks[i], bytes);
    for (size_t done = 0; done < content->blocks[i].bytes;) {
      ssize_t some = write(file, bytes + done, content->blocks[i].bytes - done);
      if (some < 0 && errno == EINTR) continue;
      if (some <= 0) return false;
      done += (size_t)some;
    }
  }
  return true;
}

static void each_in(const struct content *content, void (*call)(const struct image_block *, void *), void *with) {
  for (size_t i = 0; i < content->count; i++) call(&content->blocks[i], with);
}

void each_block(const struct image *image, void (*call)(const struct image_block *block, void *with), void *with) {
  for (size_t i = 0; i < image->file_count; i++) each_in(&image->sandbox_files[i].content, call, with);
  for (size_t i = 0; i < image->description_count; i++) each_in(&image->descriptions[i].content, call, with);
  for (size_t i = 0; i < image->process_count; i++)
    for (size_t k = 0; k < image->processes[i].page_count; k++) call(&image->processes[i].pages[k].block, with);
}

char *base_path(const char *image, uint64_t id) { return printed("%s.%016lx", image, id); }
