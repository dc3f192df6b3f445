import DefaultTheme from 'vitepress/theme';
import { h, onMounted, ref } from 'vue';

/** A diagram, drawn when the page is shown; its text until then. */
const Mermaid = {
  props: { code: { type: String, required: true } },
  setup(props) {
    const text = decodeURIComponent(props.code);
    const svg = ref('');
    onMounted(async () => {
      await import('@mermaid-js/tiny');
      const { mermaid } = globalThis;
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
