import { Flags } from '@oclif/core';

export const printFormatFlag = Flags.string({
  aliases: ['pr'],
  helpValue: '<file>',
  summary: 'A table as an HTCondor print format file (SELECT …) describes it.',
});

/** How jobs are printed as ClassAds, the same for queue and history. */
export const adFlags = {
  long: Flags.boolean({ char: 'l', summary: 'Whole ClassAds.' }),
  json: Flags.boolean({ summary: 'ClassAds as a JSON array.' }),
  jsonl: Flags.boolean({ summary: 'ClassAds as JSON, one per line.' }),
  xml: Flags.boolean({ summary: 'ClassAds as XML.' }),
  attributes: Flags.string({ helpValue: '<A,B,…>', summary: 'Only these attributes in --long, --json and --xml.' }),
  af: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    helpValue: '<attribute>',
    summary: 'Values of attributes or expressions; written -af:LETTERS A B … as in HTCondor.',
  }),
  'af-format': Flags.string({ hidden: true, default: '' }),
  format: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    helpValue: '<format> <attribute>',
    summary: String.raw`One attribute in a printf format, such as -format '%d.' ClusterId -format '%d\n' ProcId.`,
  }),
  'print-format': printFormatFlag,
};
