"use strict";
// Before anything is drawn: the colours that somebody chose. A module would come too late.
try {
  const theme = localStorage.getItem("nudge.theme");
  if (theme == "light" || theme == "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is forbidden here: the system's colours it is.
}
