import{d as a,e as b}from"./chunk-LH7R7MAB.js";import"./chunk-XAH4Z22R.js";export{a as Compare,b as Parallel};
