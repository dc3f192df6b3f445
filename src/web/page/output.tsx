import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, ask } from './api.ts';
import { Empty, Panel, Text } from './parts.tsx';
import { plainLines } from './plain.ts';

/** What is kept of an output; characters. */
const KEPT = 300_000;
/** A burst is drawn together; milliseconds. */
const DRAW_MS = 100;
const AGAIN_MS = 1500;

/** Standard output and error, as they are written. */
export function Output({ job, attempt }: { readonly job: string; readonly attempt: number }) {
  const [stream, setStream] = useState<'stdout' | 'stderr'>('stdout');
  const [text, setText] = useState('');
  const [cut, setCut] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [over, setOver] = useState(false);
  const place = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const gone = new AbortController();
    let held = '';
    let timer: ReturnType<typeof setTimeout> | undefined;
    const draw = (): void => {
      timer = undefined;
      const { current } = place;
      const atEnd = !current || current.scrollHeight - current.scrollTop - current.clientHeight < 40;
      setText(held);
      if (atEnd) requestAnimationFrame(() => current?.scrollTo({ top: current.scrollHeight }));
    };
    const follow = async (): Promise<void> => {
      const { body } = await ask(`/jobs/${job}/output?stream=${stream}&last=${KEPT}&follow=true`, {
        signal: gone.signal,
      });
      if (!body) return;
      held = '';
      setProblem(undefined);
      const reader = body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        held += value;
        if (held.length > KEPT) {
          held = held.slice(-KEPT);
          setCut(true);
        }
        timer ??= setTimeout(draw, DRAW_MS);
      }
    };
    setText('');
    setCut(false);
    setOver(false);
    void (async () => {
      while (!gone.signal.aborted) {
        try {
          await follow();
          return setOver(true);
        } catch (thrown) {
          if (gone.signal.aborted) return;
          if (thrown instanceof ApiError && thrown.status !== 0) return setProblem(thrown.message);
        }
        await new Promise((done) => setTimeout(done, AGAIN_MS));
      }
    })();
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [job, stream, attempt]);
  return (
    <Panel
      title="Output"
      id="output"
      tools={
        <div role="tablist" aria-label="Which output">
          {(['stdout', 'stderr'] as const).map((one) => (
            <button key={one} type="button" role="tab" aria-selected={stream === one} onClick={() => setStream(one)}>
              {one === 'stdout' ? 'Standard output' : 'Standard error'}
            </button>
          ))}
        </div>
      }
    >
      {problem !== undefined ? (
        <Empty>
          <Text of={problem} />
        </Empty>
      ) : (
        <>
          {cut && <p class="muted">The end of it:</p>}
          <pre
            class="output"
            ref={place}
            tabIndex={0}
            aria-label={stream === 'stdout' ? 'Standard output' : 'Standard error'}
          >
            {plainLines(text)}
          </pre>
          {text === '' && <Empty>{over ? 'It wrote nothing.' : 'Nothing yet.'}</Empty>}
        </>
      )}
    </Panel>
  );
}
