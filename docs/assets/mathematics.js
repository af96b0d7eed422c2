// Set what arithmatex marked: \(…\) within lines, \[…\] on lines of their own.
document.addEventListener("DOMContentLoaded", () => {
  for (const element of document.querySelectorAll(".arithmatex")) {
    const display = element.tagName === "DIV";
    const source = element.textContent.trim().slice(2, -2);
    katex.render(source, element, { displayMode: display, throwOnError: false });
  }
});
