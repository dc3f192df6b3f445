/** What completion needs to know about a command. */
export interface Described {
  readonly summary?: string | undefined;
  readonly args?: Readonly<Record<string, { readonly options?: readonly string[] }>>;
  readonly flags?: Readonly<
    Record<
      string,
      {
        readonly type: 'boolean' | 'option';
        readonly char?: string;
        readonly summary?: string;
        readonly hidden?: boolean;
        readonly options?: readonly string[];
      }
    >
  >;
}

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];
type Commands = Readonly<Record<string, Described>>;

/** A completion script for commands, their options and choices, sites, jobs, keys, and otherwise files. */
export function completionScript(shell: Shell, commands: Commands): string {
  return { bash, zsh, fish }[shell](commands);
}

interface Option {
  readonly words: readonly string[];
  readonly summary: string;
  readonly takesValue: boolean;
  readonly choices: readonly string[];
}

function optionsOf(command: Described | undefined): Option[] {
  const own = Object.entries(command?.flags ?? {}).filter(([, flag]) => !flag.hidden);
  const options = own.map(([name, flag]) => ({
    words: [`--${name}`, ...(flag.char ? [`-${flag.char}`] : [])],
    summary: flag.summary ?? '',
    takesValue: flag.type === 'option',
    choices: flag.options ?? [],
  }));
  return [...options, { words: ['--help'], summary: 'Show help.', takesValue: false, choices: [] }];
}

/** The command that prints the sites' names. */
const SITES = 'gryphus site list --quiet 2>/dev/null';

/** Commands that print the words which depend on the moment. */
const LISTS = {
  site: SITES,
  jobs: 'gryphus completion bash --words jobs 2>/dev/null',
  keys: 'gryphus completion bash --words keys 2>/dev/null',
} as const;

type First = keyof typeof LISTS | readonly string[];

/** What may be the first word of a command: certain words, sites, jobs, keys of the configuration, or anything. */
function firstOf(id: string, { args = {} }: Described): First {
  if (id.startsWith('site:') && id !== 'site:add') return 'site';
  const [name, arg] = Object.entries(args)[0] ?? [];
  if (name === 'jobs' || name === 'job') return 'jobs';
  if (id === 'config') return 'keys';
  return arg?.options ?? [];
}

/** Whether every word of a command is such a one, not only the first. */
function repeats(first: First): boolean {
  return first === 'jobs';
}

function isList(first: First): first is keyof typeof LISTS {
  return typeof first === 'string';
}

const topicsOf = (commands: Commands) => [...new Set(Object.keys(commands).map((id) => id.split(':')[0] ?? id))].sort();
const inTopic = (commands: Commands, topic: string) =>
  Object.keys(commands)
    .filter((id) => id.startsWith(`${topic}:`))
    .map((id) => id.slice(topic.length + 1));

/** Quotes a word for a shell script with single quotes. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function bash(commands: Commands): string {
  const topics = topicsOf(commands).filter((topic) => inTopic(commands, topic).length > 0);
  const name = (id: string) => quote(id.replace(':', ' '));
  const subs = topics.map((topic) => `    ${topic}) at=3 words=${quote(inTopic(commands, topic).join(' '))} ;;`);
  const values = Object.entries(commands).flatMap(([id, command]) =>
    optionsOf(command).flatMap(({ words, choices }) => {
      const patterns = words.map((word) => quote(`${id.replace(':', ' ')} ${word}`)).join('|');
      return choices.length > 0 ? [`    ${patterns}) words=${quote(choices.join(' '))} value=1 ;;`] : [];
    }),
  );
  const cases = Object.entries(commands).map(([id, command]) => {
    const options = quote(
      optionsOf(command)
        .flatMap(({ words }) => words)
        .join(' '),
    );
    const first = firstOf(id, command);
    const args = isList(first) ? `"$(${LISTS[first]})"` : quote(first.join(' '));
    const where = repeats(first) ? '' : '[ "$COMP_CWORD" -ne "$at" ] || ';
    return `    ${name(id)}) case "$word" in -*) words=${options} ;; *) ${where}words=${args} ;; esac ;;`;
  });
  return `# bash completion for gryphus
_gryphus() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" cmd="\${COMP_WORDS[1]-}" at=2 words= value=
  COMPREPLY=()
  case "$cmd" in
${subs.join('\n')}
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    words=${quote(`${topicsOf(commands).join(' ')} help --help --version`)}
  elif [ "$COMP_CWORD" -ge "$at" ]; then
    words=
    [ "$at" -eq 2 ] || cmd="$cmd \${COMP_WORDS[2]-}"
    case "$cmd $before" in
${values.join('\n')}
    *' --site') words="$(${SITES})" value=1 ;;
    esac
    [ -n "$value" ] || case "$cmd" in
${cases.join('\n')}
    esac
  fi
  [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _gryphus gryphus
`;
}

function zsh(commands: Commands): string {
  const describe = (text: string) => text.replaceAll(/[[\]:\\]/g, (c) => `\\${c}`);
  const pair = (name: string, summary: string) => quote(`${name}:${summary.replaceAll(':', ' ')}`);
  const argumentsOf = (command: Described) =>
    optionsOf(command)
      .flatMap(({ words, summary, takesValue, choices }) =>
        words.map((word) => {
          const some = word === '--site' ? `$(${SITES})` : choices.join(' ');
          const value = some === '' ? (takesValue ? ':value:_default' : '') : `:value:(${some})`;
          return `      ${quote(`${word}[${describe(summary)}]${value}`)} \\\n`;
        }),
      )
      .join('');
  const bodies = Object.entries(commands).map(([id, command]) => {
    const first = firstOf(id, command);
    const message = isList(first) ? `$(${LISTS[first]})` : first.join(' ');
    const args = message === '' ? `'*:file:_files'` : quote(`${repeats(first) ? '*' : '1'}:word:(${message})`);
    return `    ${quote(id.replace(':', ' '))})\n      _arguments \\\n${argumentsOf(command)}      ${args} ;;`;
  });
  const topics = topicsOf(commands).map((topic) => pair(topic, commands[topic]?.summary ?? `${topic} commands`));
  const subs = topicsOf(commands)
    .filter((topic) => inTopic(commands, topic).length > 0)
    .map((topic) => {
      const pairs = inTopic(commands, topic).map((name) => pair(name, commands[`${topic}:${name}`]?.summary ?? ''));
      return `    ${topic}) if (( CURRENT == 3 )); then local -a subs=(${pairs.join(' ')}); _describe command subs; return; fi; id="$words[2] $words[3]"; shift words; (( CURRENT-- )) ;;`;
    });
  return `#compdef gryphus
_gryphus() {
  local -a topics=(${topics.join(' ')})
  if (( CURRENT == 2 )); then
    _describe command topics
    return
  fi
  local id="$words[2]"
  case "$words[2]" in
${subs.join('\n')}
  esac
  shift words; (( CURRENT-- ))
  case "$id" in
${bodies.join('\n')}
  esac
}
if [ "$funcstack[1]" = _gryphus ]; then _gryphus "$@"; else compdef _gryphus gryphus; fi
`;
}

function fish(commands: Commands): string {
  const lines = ['# fish completion for gryphus', 'complete -c gryphus -f'];
  for (const topic of topicsOf(commands)) {
    const summary = commands[topic]?.summary ?? `${topic} commands`;
    lines.push(`complete -c gryphus -n __fish_use_subcommand -a ${topic} -d ${fishQuote(summary)}`);
  }
  for (const [id, command] of Object.entries(commands)) {
    const [topic = id, name] = id.split(':');
    const seen = `__fish_seen_subcommand_from ${topic}`;
    const here = name === undefined ? seen : `${seen}; and __fish_seen_subcommand_from ${name}`;
    if (name !== undefined) {
      const others = inTopic(commands, topic).join(' ');
      lines.push(
        `complete -c gryphus -n ${fishQuote(`${seen}; and not __fish_seen_subcommand_from ${others}`)} -a ${name} -d ${fishQuote(command.summary ?? '')}`,
      );
    }
    const first = firstOf(id, command);
    const message = isList(first) ? `(${LISTS[first]})` : first.join(' ');
    if (message !== '') lines.push(`complete -c gryphus -n ${fishQuote(here)} -a ${fishQuote(message)}`);
    else if (Object.keys(command.args ?? {}).length > 0) lines.push(`complete -c gryphus -n ${fishQuote(here)} -F`);
    for (const { words, summary, takesValue, choices } of optionsOf(command)) {
      const long = words[0]?.slice(2) ?? '';
      const short = words[1] === undefined ? '' : ` -s ${words[1].slice(1)}`;
      const some = long === 'site' ? `(${SITES})` : choices.join(' ');
      const value = some === '' ? (takesValue ? ' -r' : '') : ` -x -a ${fishQuote(some)}`;
      lines.push(`complete -c gryphus -n ${fishQuote(here)} -l ${long}${short}${value} -d ${fishQuote(summary)}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

function fishQuote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
