/** Whether `text` matches a pattern with `*` and `?` (PATTERNS in ssh_config(5)); case matters. */
export function matchesPattern(text: string, pattern: string): boolean {
  // Backtracks only to the latest star, which is linear in practice and never exponential.
  let at = 0;
  let in_ = 0;
  let star = -1;
  let resume = 0;
  while (at < text.length) {
    if (pattern[in_] === '*') {
      star = in_++;
      resume = at;
    } else if (in_ < pattern.length && (pattern[in_] === '?' || pattern[in_] === text[at])) {
      at++;
      in_++;
    } else if (star !== -1) {
      in_ = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[in_] === '*') in_++;
  return in_ === pattern.length;
}

/** Matches a list of patterns: at least one matches, and none of the `!pattern`s does. */
export function matchesPatterns(text: string, patterns: readonly string[]): boolean {
  let matched = false;
  for (const pattern of patterns) {
    if (pattern.startsWith('!')) {
      if (matchesPattern(text, pattern.slice(1))) return false;
    } else if (matchesPattern(text, pattern)) {
      matched = true;
    }
  }
  return matched;
}
