// What is served of a file of `app/`: modules of our own and styles without the lines that are comments, without types in
// other lines, and without what indents them. Lines are left empty, so that a fault is told of the line where it is. The
// server's build script has the same rule.

/** Whether comments are left out of a file, by its path below `app/`. */
export const isOurs = (path) => /\.(js|css)$/.test(path) && !path.startsWith("vendor/");

/** A text without the lines that are comments, without types in other lines, and without indentation. */
export function withoutComments(text) {
  let inside = false;
  const lines = text.replace(/\n$/, "").split("\n").map((line) => {
    const trimmed = line.trim();
    const end = trimmed.indexOf("*/");
    if (inside) {
      inside = end < 0;
      return inside ? "" : trimmed.slice(end + 2);
    }
    inside = trimmed.startsWith("/*") && end < 0;
    const whole = trimmed.startsWith("//") || (trimmed.startsWith("/*") && end == trimmed.length - 2);
    return inside || whole ? "" : trimmed.replace(/\/\*\* @.*?\*\/ ?/g, "");
  });
  return `${lines.join("\n")}\n`;
}
