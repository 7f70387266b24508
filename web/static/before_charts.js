// The content security policy allows styles from files and properties set by scripts; the chart library also writes
// style attributes and style elements. The former are set as properties here, the latter are in console.css.
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
