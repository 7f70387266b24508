// The page's policy takes styles from files, and from scripts that set them one by one; the chart library also writes
// style attributes and whole style elements. The first are set one by one here, the others stand in console.css.
"use strict";

const setAttribute = Element.prototype.setAttribute;
Element.prototype.setAttribute = function set(name, value) {
  if (name === "style") this.style.cssText = value;
  else setAttribute.call(this, name, value);
};

const createElement = document.createElement;
document.createElement = function create(name, ...rest) {
  return createElement.call(document, name === "style" ? "meta" : name, ...rest);
};
