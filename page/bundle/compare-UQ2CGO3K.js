import{d as a,e as b}from"./chunk-IJ5CHFJH.js";import"./chunk-FOXVU4IO.js";export{a as Compare,b as Parallel};
