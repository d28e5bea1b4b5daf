// The key "/" leads to the first search field, as in many programs. Pages work without this.
"use strict";

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  const field = document.querySelector("form.search input:not([type=hidden])");
  if (field) {
    event.preventDefault();
    field.focus();
    field.select();
  }
});
