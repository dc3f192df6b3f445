/** Shell programs that are built into a bundle as text. */
declare module '*.sh' {
  const text: string;
  export default text;
}
