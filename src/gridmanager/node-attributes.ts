import type { AttrTexts } from '../job/attrs.ts';
import { NODE_ENDINGS, type NodeEnding, nodeEndings } from '../job/node-endings.ts';
import { quoted } from '../job/values.ts';
import type { NodeReport, Report } from '../site/contract.ts';

/** The slots of a parallel job in the pool, under HTCondor's names. */
export function nodesStarted(report: Report): AttrTexts {
  const nodes = nodesOf(report);
  if (nodes.length === 0) return {};
  const slots = quoted(nodes.map(({ slot }) => slot).join(','));
  return { AllRemoteHosts: slots, RemoteHosts: slots, CurrentHosts: String(nodes.length), [NODE_ENDINGS]: null };
}

/** How its nodes ended that ended by themselves, for the events of its log. */
export function nodesEnded(report: Report): AttrTexts {
  const nodes = nodesOf(report);
  if (nodes.length === 0) return {};
  const ended = nodes.flatMap(({ number, exitCode, signal, endedAt = 0, usage }): NodeEnding[] => {
    const { userCpuSeconds: user = 0, systemCpuSeconds: system = 0 } = usage ?? {};
    const times = { number, endedAt, user, system };
    if (exitCode !== undefined) return [{ ...times, exitCode }];
    return signal === undefined ? [] : [{ ...times, signal }];
  });
  ended.sort((a, b) => a.endedAt - b.endedAt || a.number - b.number);
  return { CurrentHosts: '0', [NODE_ENDINGS]: quoted(nodeEndings(ended)) };
}

function nodesOf(report: Report): readonly NodeReport[] {
  return (report.is === 'running' || report.is === 'ended' ? report.nodes : undefined) ?? [];
}
