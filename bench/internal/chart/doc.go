// Package chart draws line charts as SVG, with linear or logarithmic axes. It
// knows nothing of what is drawn.
package chart
