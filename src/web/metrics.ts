import { credentialsOf, sitesOf } from './overview.ts';
import type { Web } from './web.ts';

export const METRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

type Labels = Readonly<Record<string, string>>;

/** The agent in OpenMetrics form. Counters start with the server. */
export async function metrics(web: Web): Promise<string> {
  const [totals, sites, credentials] = await Promise.all([web.gryphus.totals(), sitesOf(web), credentialsOf(web)]);
  const out = new Families();
  const { idle, running, held, suspended } = totals;
  out.family('gryphus_jobs', 'gauge', 'Jobs in the queue by state.');
  for (const [state, count] of Object.entries({ idle, running, held, suspended }))
    out.sample('gryphus_jobs', { state }, count);
  const { counters } = web.samples;
  for (const name of ['submitted', 'started', 'completed', 'removed', 'held', 'failed'] as const) {
    out.family(`gryphus_jobs_${name}`, 'counter', `Jobs ${name} since the server started.`);
    out.sample(`gryphus_jobs_${name}_total`, {}, counters[name]);
  }
  out.family('gryphus_queue_wait_seconds', 'summary', 'From the promise of a site to the start of the job.');
  out.sample('gryphus_queue_wait_seconds_count', {}, counters.waits);
  out.sample('gryphus_queue_wait_seconds_sum', {}, counters.waitSum);
  out.family('gryphus_site_up', 'gauge', 'Whether the connection with the site is up.');
  for (const { name: site, connection } of sites) out.sample('gryphus_site_up', { site }, connection === 'up' ? 1 : 0);
  out.family('gryphus_site_jobs', 'gauge', 'Jobs of a site by what it does with them.');
  for (const { name: site, idle: waiting, queuedThere: queued, running: run, unknown } of sites)
    for (const [state, count] of Object.entries({ waiting, queued, running: run, unknown }))
      out.sample('gryphus_site_jobs', { site, state }, count);
  out.family('gryphus_credential_left_seconds', 'gauge', 'Time until a credential ends.');
  for (const { name, what, left } of credentials)
    if (left !== undefined) out.sample('gryphus_credential_left_seconds', { name, what }, left);
  out.family('gryphus_web_memory_bytes', 'gauge', 'Memory of the process that serves the page.');
  out.sample('gryphus_web_memory_bytes', {}, process.memoryUsage.rss());
  return out.text();
}

class Families {
  readonly #lines: string[] = [];

  family(name: string, type: string, help: string): void {
    this.#lines.push(`# TYPE ${name} ${type}`, `# HELP ${name} ${help}`);
  }

  sample(name: string, labels: Labels, value: number): void {
    const shown = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`);
    this.#lines.push(`${name}${shown.length > 0 ? `{${shown.join(',')}}` : ''} ${value}`);
  }

  text(): string {
    return `${this.#lines.join('\n')}\n# EOF\n`;
  }
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
