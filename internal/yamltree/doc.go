// Package yamltree reads a YAML file as a tree of values with places, strictly,
// and collects what is wrong with it instead of stopping.
//
// # Laws
//
// One file is one document. There is one way to write a value: no anchors,
// aliases, merge keys, tags or directives. A key is a string and stands once in
// its mapping. A number is what its digits say: nothing is rounded, and nothing
// is taken for octal.
//
// Time and memory are bounded by the file's size, which is bounded, whatever
// stands in it.
package yamltree
