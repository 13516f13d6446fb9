;; Two components in one, and a text that passes from one to the other: what wasmtime puts between them has
;; two memories.
(component
  (component $giver
    (core module $m
      (memory (export "memory") 1)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 0)
      (func (export "take") (param i32 i32)))
    (core instance $i (instantiate $m))
    (func (export "take") (param "text" string)
      (canon lift (core func $i "take") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))
  (component $taker
    (import "take" (func $take (param "text" string)))
    (core module $memory
      (memory (export "memory") 1)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 0))
    (core instance $memory (instantiate $memory))
    (core func $take
      (canon lower (func $take) (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
    (core module $m
      (import "" "take" (func $take (param i32 i32)))
      (func (export "run") i32.const 0 i32.const 0 call $take))
    (core instance $i (instantiate $m (with "" (instance (export "take" (func $take))))))
    (func (export "run") (canon lift (core func $i "run"))))
  (instance $giver (instantiate $giver))
  (instance $taker (instantiate $taker (with "take" (func $giver "take"))))
  (export "run" (func $taker "run")))
