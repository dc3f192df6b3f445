/** What completion needs to know of a command. */
export interface Described {
  readonly summary?: string | undefined;
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

/** A completion script: commands, their options and choices, names of sites, else files. */
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

const topicsOf = (commands: Commands) => [...new Set(Object.keys(commands).map((id) => id.split(':')[0] ?? id))].sort();
const inTopic = (commands: Commands, topic: string) =>
  Object.keys(commands)
    .filter((id) => id.startsWith(`${topic}:`))
    .map((id) => id.slice(topic.length + 1));

/** A word for a shell script: single quotes. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function bash(commands: Commands): string {
  const cases = (inTopics: boolean) =>
    Object.entries(commands)
      .filter(([id]) => id.includes(':') === inTopics)
      .map(([id, command]) => {
        const words = optionsOf(command).flatMap((option) => option.words);
        return `    ${quote(id.replace(':', ' '))}) words=${quote(words.join(' '))} ;;`;
      })
      .join('\n');
  const topics = topicsOf(commands)
    .filter((topic) => inTopic(commands, topic).length > 0)
    .map((topic) => `    ${topic}) words=${quote(inTopic(commands, topic).join(' '))} ;;`);
  const choices = Object.values(commands).flatMap((command) =>
    optionsOf(command).filter((option) => option.choices.length > 0),
  );
  const choiceCases = [...new Map(choices.map((option) => [option.words[0] ?? '', option])).values()].map(
    (option) =>
      `    ${option.words.join('|')}) COMPREPLY=($(compgen -W ${quote(option.choices.join(' '))} -- "$word")); return ;;`,
  );
  return `# bash completion for gryphus
_gryphus() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" one="\${COMP_WORDS[1]-}" two="\${COMP_WORDS[2]-}" words=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W ${quote(`${topicsOf(commands).join(' ')} --help --version`)} -- "$word"))
    return
  fi
  case "$before" in
${choiceCases.join('\n')}
  esac
  if [ "$COMP_CWORD" -eq 2 ]; then
    case "$one" in
${topics.join('\n')}
    esac
    if [ -n "$words" ]; then
      COMPREPLY=($(compgen -W "$words" -- "$word"))
      return
    fi
  fi
  if [ "$one" = site ] && [ "$COMP_CWORD" -eq 3 ] && [ "$two" != add ]; then
    COMPREPLY=($(compgen -W "$(gryphus site list --quiet 2>/dev/null)" -- "$word"))
    return
  fi
  case "$one $two" in
${cases(true)}
    *) case "$one" in
${cases(false)}
    esac ;;
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
  esac
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
          const value = choices.length > 0 ? `:value:(${choices.join(' ')})` : takesValue ? ':value:_default' : '';
          return `      ${quote(`${word}[${describe(summary)}]${value}`)} \\\n`;
        }),
      )
      .join('');
  const bodies = Object.entries(commands).map(([id, command]) => {
    const files =
      id.startsWith('site:') && id !== 'site:add'
        ? `'1:site:($(gryphus site list --quiet 2>/dev/null))'`
        : `'*:file:_files'`;
    return `    ${quote(id.replace(':', ' '))})\n      _arguments \\\n${argumentsOf(command)}      ${files} ;;`;
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
      if (topic === 'site' && name !== 'add')
        lines.push(`complete -c gryphus -n ${fishQuote(here)} -a '(gryphus site list --quiet 2>/dev/null)'`);
    } else lines.push(`complete -c gryphus -n ${fishQuote(here)} -F`);
    for (const { words, summary, takesValue, choices } of optionsOf(command)) {
      const long = words[0]?.slice(2) ?? '';
      const short = words[1] === undefined ? '' : ` -s ${words[1].slice(1)}`;
      const value = choices.length > 0 ? ` -x -a ${fishQuote(choices.join(' '))}` : takesValue ? ' -r' : '';
      lines.push(`complete -c gryphus -n ${fishQuote(here)} -l ${long}${short}${value} -d ${fishQuote(summary)}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

function fishQuote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
