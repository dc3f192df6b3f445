import { CommandHelp, Help } from '@oclif/core';

/** oclif's lists, whose first line loses the place of its short flag. */
class AlignedHelp extends CommandHelp {
  override renderList(...[input, options]: Parameters<CommandHelp['renderList']>): string {
    const text = super.renderList(input, options);
    return `${/^ */.exec(input[0]?.[0] ?? '')?.[0] ?? ''}${text}`;
  }
}

/** oclif's help; what it takes for a topic by a part of another's name (`rm` in `alarm test`) is none. */
export class GryphusHelp extends Help {
  protected override CommandHelpClass = AlignedHelp;

  protected override get sortedTopics() {
    const ids = this.config.commandIDs;
    return super.sortedTopics.filter(({ name }) => ids.some((id) => id.startsWith(`${name}:`)));
  }
}
