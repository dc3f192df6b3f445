import mermaidFile from '@mermaid-js/tiny/dist/mermaid.tiny.js?url';
import DefaultTheme from 'vitepress/theme';
import { h, onMounted, ref } from 'vue';

let loading;

/** It is a classic script, which makes one global. */
function loadMermaid() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = mermaidFile;
    script.onload = () => resolve(globalThis.mermaid);
    script.onerror = reject;
    document.head.append(script);
  });
  return loading;
}

/** A diagram, drawn when the page is shown; its text until then. */
const Mermaid = {
  props: { code: { type: String, required: true } },
  setup(props) {
    const text = decodeURIComponent(props.code);
    const svg = ref('');
    onMounted(async () => {
      const mermaid = await loadMermaid();
      const dark = document.documentElement.classList.contains('dark');
      mermaid.initialize({ startOnLoad: false, theme: dark ? 'dark' : 'neutral' });
      ({ svg: svg.value } = await mermaid.render(`m${Math.random().toString(36).slice(2)}`, text));
    });
    return () => (svg.value === '' ? h('pre', text) : h('div', { class: 'mermaid', innerHTML: svg.value }));
  },
};

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('Mermaid', Mermaid);
  },
};
