/** Shell scripts that the bundler embeds as text. */
declare module '*.sh' {
  const text: string;
  export default text;
}
