use quickbeam::*;
#[test]
fn s() {
    let e = Environment::memory(Options::default()).unwrap();
    let d = e.create_database("a").unwrap();
    let t = e.begin().unwrap();
    d.put(&t, b"k", &[1; 30000]).unwrap();
    t.commit().unwrap();
    let t = e.begin().unwrap();
    d.put(&t, b"k", &[2; 30000]).unwrap();
    println!("{:?}", e.verify().unwrap());
    d.put(&t, b"k", &[3; 30000]).unwrap();
    println!("{:?}", e.verify().unwrap());
    d.delete(&t, b"k").unwrap();
    println!("{:?}", e.verify().unwrap());
    let s = t.savepoint().unwrap();
    t.create_database("x").unwrap();
    println!("{:?}", e.verify().unwrap());
    t.rollback_to(s).unwrap();
    println!("{:?}", e.verify().unwrap());
    t.commit().unwrap();
    println!("{:?}", e.verify().unwrap());
}
